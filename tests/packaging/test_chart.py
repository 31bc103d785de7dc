"""The Helm chart, rendered by Helm's own engine: valid for Kubernetes, closed by default, in step with Settings."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.settings import Settings
from tests.packaging.rendering import (
    CHART,
    ROOT,
    SCHEMA,
    VERSIONS,
    Render,
    containers,
    environment,
    helm,
    kubernetes_validate,
    pod,
    snake,
)

# Settings that the chart itself decides: ports and paths inside the pod, and what comes from a Secret.
CHARTS_OWN = {"policies", "key", "key_file", "database_url", "lookup_urls"} | {
    f"{door}_{part}" for door in ("dicom", "http", "review") for part in ("host", "port")
}
CHARTS_OWN |= {"review_url", "review_tls_certificate", "review_tls_key", "review_oidc_secret_file", "review_oidc_ca"}
CHARTS_OWN |= {"roles"}  # each Deployment of a cluster has its own
CHARTS_OWN |= {"notify_webhook_url", "notify_webhook_key", "notify_mail_password", "notify_ca"}  # secrets, and a file
CHARTS_OWN |= {f"{door}_tls_{part}" for door in ("dicom", "stow") for part in ("certificate", "key", "ca")}
CHARTS_OWN |= {"dicom_tls_port", "stow_host", "stow_port"}

FULL = {
    "image": {"repository": "registry.example/deid-gateway", "digest": "sha256:" + "ab" * 32},
    "settings": {"allowedPeers": ["PACS@10.0.0.7", "CT1@*"], "minFreeBytes": 1073741824, "quietS": 2.5, "pollS": 1},
    "policies": {"routes.yaml": "routes: []\n", "destinations.yaml": 'archive: "folder:/archive" # {{ not helm }}\n'},
    "database": {"existingSecret": "deid-database"},
    "lookups": {"existingSecret": "deid-lookups"},
    "persistence": {"storageClass": "encrypted-ssd", "annotations": {"backup": "daily"}},
    "service": {"type": "LoadBalancer", "dicomPort": 104, "loadBalancerIP": "10.0.0.9", "annotations": {"a": "b"}},
    "networkPolicy": {
        "dicomFrom": [{"ipBlock": {"cidr": "10.0.0.7/32"}}],
        "httpFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.1.9/32"}}], "ports": [{"port": 4242, "protocol": "TCP"}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "serviceAccount": {"annotations": {"a": "b"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "imaging"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "imaging", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}


def test_helm_itself_finds_no_fault() -> None:
    said = helm.lint(str(CHART))
    assert said["errors"] == []
    assert [message for message in said["messages"] if message["severity"] > 1] == []


def test_the_charts_version_is_the_programs() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (described["version"], described["appVersion"]) == (version, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "values", [{}, FULL, {"persistence": {"existingClaim": "home"}}], ids=["default", "full", "pvc"]
)
def test_what_is_rendered_is_valid_for_kubernetes(render: Render, values: dict[str, Any], version: str) -> None:
    for key, part in render(values).items():
        if not key.startswith("ServiceMonitor/"):  # a custom resource, without a schema here
            kubernetes_validate.validate(part, version, strict=True)


def test_by_default_one_of_each_is_made_and_no_secret(render: Render) -> None:
    assert sorted(render()) == [
        "NetworkPolicy/deid-gateway",
        "Service/deid-gateway",
        "Service/deid-gateway-http",
        "ServiceAccount/deid-gateway",
        "StatefulSet/deid-gateway",
    ]


def test_two_releases_in_one_namespace_do_not_meet(render: Render) -> None:
    one, two = render(FULL, name="a"), render(FULL, name="b")
    assert not one.keys() & two.keys()
    select = "app.kubernetes.io/instance"
    assert one["Service/a-deid-gateway"]["spec"]["selector"][select] == "a"
    assert two["NetworkPolicy/b-deid-gateway"]["spec"]["podSelector"]["matchLabels"][select] == "b"


@pytest.mark.parametrize("values", [{}, FULL], ids=["default", "full"])
def test_no_container_may_do_more_than_it_must(render: Render, values: dict[str, Any]) -> None:
    objects = render(values)
    security = pod(objects)["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == security["runAsGroup"] == security["fsGroup"] == 10001
    assert "USER 10001:10001" in (ROOT / "Dockerfile").read_text()
    assert security["fsGroupChangePolicy"] == "OnRootMismatch"
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod(objects)["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod(objects).keys()
    for container in containers(objects):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable == {"/var/lib/deid", "/tmp"}


def test_there_is_one_engine_and_a_second_cannot_be_asked_for(render: Render) -> None:
    assert render()["StatefulSet/deid-gateway"]["spec"]["replicas"] == 1
    with pytest.raises(helm.HelmError):
        render({"replicas": 2})


def test_the_key_comes_from_a_secret_that_the_chart_does_not_make(render: Render) -> None:
    objects = render({"masterKey": {"existingSecret": "site-key", "key": "k"}})
    (volume,) = [volume for volume in pod(objects)["volumes"] if "secret" in volume]
    assert volume["secret"] == {
        "secretName": "site-key",
        "defaultMode": 0o440,  # gateway/pseudonyms.py takes group read, and nothing for others
        "items": [{"key": "k", "path": "master.key"}],
    }
    for container in containers(objects):
        assert environment(container)["DEID_KEY_FILE"] == "/etc/deid/keys/master.key"
        assert "DEID_KEY" not in environment(container)
        (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == volume["name"]]
        assert mount == {"name": volume["name"], "mountPath": "/etc/deid/keys", "readOnly": True}
    assert not [key for key in objects if key.startswith("Secret/")]


def test_no_value_can_hold_a_key_or_a_password() -> None:
    def names(schema: dict[str, Any], path: str = "") -> Iterator[str]:
        for name, inner in schema.get("properties", {}).items():
            yield f"{path}.{name}"
            yield from names(inner, f"{path}.{name}")

    suspicious = [name for name in names(SCHEMA) if re.search(r"key|secret|password|token|url", name, re.IGNORECASE)]
    allowed = {".masterKey", ".masterKey.existingSecret", ".masterKey.key", ".image.pullSecrets"}
    # names of a Secret and of an entry in it
    allowed |= {f".{part}.{name}" for part in ("database", "lookups") for name in ("existingSecret", "key")}
    allowed |= {".tls.existingSecret", ".destinations.existingSecret"}
    allowed |= {".review.tlsSecret", ".review.oidcSecret", ".review.ingress.tlsSecret"}
    allowed |= {".notify.existingSecret", ".settings.notifyMailUrl"}  # the second takes no account: its pattern says so
    assert set(suspicious) == allowed
    assert not re.search(r"[0-9a-f]{32}", (CHART / "values.yaml").read_text())


def test_the_home_is_made_before_the_gateway_serves_from_it(render: Render) -> None:
    init, gateway = containers(render())
    assert environment(init) == environment(gateway)
    assert init["args"] == ["init", environment(init)["DEID_HOME"]]
    assert gateway["args"] == ["serve"]
    # Below the mount point, whose owner is root.
    assert environment(gateway)["DEID_HOME"].startswith("/var/lib/deid/")


def test_the_home_is_a_claim_of_its_own_or_the_one_that_is_named(render: Render) -> None:
    stateful = render(FULL)["StatefulSet/deid-gateway"]["spec"]
    (claim,) = stateful["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "home"
    assert claim["spec"]["storageClassName"] == "encrypted-ssd"
    assert claim["spec"]["resources"]["requests"]["storage"] == "100Gi"
    named = render({"persistence": {"existingClaim": "site-home"}})
    assert "volumeClaimTemplates" not in named["StatefulSet/deid-gateway"]["spec"]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": "site-home"}} in pod(named)["volumes"]


def test_probes_ask_what_the_gateway_answers(render: Render) -> None:
    _, gateway = containers(render())
    assert gateway["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert gateway["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert gateway["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    ports = {port["name"]: str(port["containerPort"]) for port in gateway["ports"]}
    assert ports == {"dicom": environment(gateway)["DEID_DICOM_PORT"], "http": environment(gateway)["DEID_HTTP_PORT"]}


def test_services_lead_to_the_ports_and_metrics_stay_inside(render: Render) -> None:
    objects = render(FULL)
    dicom, http = objects["Service/deid-gateway"]["spec"], objects["Service/deid-gateway-http"]["spec"]
    assert dicom["type"] == "LoadBalancer"
    assert dicom["ports"] == [{"name": "dicom", "port": 104, "targetPort": "dicom", "protocol": "TCP"}]
    assert dicom["externalTrafficPolicy"] == "Local"  # else every sender looks like a node
    assert dicom["publishNotReadyAddresses"] is True  # out-of-resources is answered, not a closed port
    assert http["type"] == "ClusterIP"
    assert [port["targetPort"] for port in http["ports"]] == ["http"]
    labels = objects["StatefulSet/deid-gateway"]["spec"]["template"]["metadata"]["labels"]
    for service in (dicom, http):
        assert service["selector"].items() <= labels.items()


def test_the_network_is_closed_until_it_is_opened(render: Render) -> None:
    closed = render({"networkPolicy": {"allowDns": False}})["NetworkPolicy/deid-gateway"]["spec"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert closed["ingress"] == closed["egress"] == []
    opened = render(FULL)["NetworkPolicy/deid-gateway"]["spec"]
    given = FULL["networkPolicy"]
    assert opened["ingress"] == [
        {"from": given["dicomFrom"], "ports": [{"port": 11112, "protocol": "TCP"}]},
        {"from": given["httpFrom"], "ports": [{"port": 8080, "protocol": "TCP"}]},
    ]
    dns, *archives = opened["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert archives == given["egress"]


def test_with_a_certificate_its_doors_open_and_lead_to_what_listens(render: Render) -> None:
    tls = {"existingSecret": "deid-tls", "clientCa": True, "dicomweb": True}
    given = {
        "networkPolicy": FULL["networkPolicy"],
        "tls": tls,
        "settings": {"allowedPeers": [f"PACS@10.0.0.7#{'a' * 64}"], "dicomPlain": False},
    }
    objects = render(given)
    _, gateway = containers(objects)
    env = environment(gateway)
    values = Settings(
        **{name: env[f"DEID_{name.upper()}"] for name in Settings.model_fields if f"DEID_{name.upper()}" in env}
    )
    assert (values.dicom_plain, values.dicom_tls_port, values.stow_port) == (False, 2762, 8443)
    ports = {port["name"]: port["containerPort"] for port in gateway["ports"]}
    assert (ports["dicom-tls"], ports["dicomweb"]) == (values.dicom_tls_port, values.stow_port)
    service = {port["name"]: port for port in objects["Service/deid-gateway"]["spec"]["ports"]}
    assert (service["dicom-tls"]["targetPort"], service["dicomweb"]["targetPort"]) == ("dicom-tls", "dicomweb")
    (volume,) = [volume for volume in pod(objects)["volumes"] if volume["name"] == "tls"]
    assert volume["secret"] == {"secretName": "deid-tls", "defaultMode": 0o440}
    (mount,) = [mount for mount in gateway["volumeMounts"] if mount["name"] == "tls"]
    for file in (values.dicom_tls_certificate, values.dicom_tls_key, values.dicom_tls_ca, values.stow_tls_key):
        assert str(file).startswith(mount["mountPath"] + "/")
    rule = objects["NetworkPolicy/deid-gateway"]["spec"]["ingress"][0]
    assert {port["port"] for port in rule["ports"]} == {11112, 2762, 8443}
    plain = render({"tls": {**tls, "dicomweb": False, "clientCa": False}})
    env = environment(containers(plain)[1])
    assert not {name for name in env if name.startswith("DEID_STOW") or name.endswith("_CA")}


@pytest.mark.parametrize("one", ["dicomFrom", "httpFrom"])
def test_opening_one_port_leaves_the_other_closed(render: Render, one: str) -> None:
    spec = render({"networkPolicy": {one: [{"podSelector": {}}]}})["NetworkPolicy/deid-gateway"]["spec"]
    (rule,) = spec["ingress"]
    assert rule["ports"] == [{"port": 11112 if one == "dicomFrom" else 8080, "protocol": "TCP"}]


def test_policies_are_mounted_as_written_and_a_change_rolls_the_pod(render: Render) -> None:
    objects = render(FULL)
    assert objects["ConfigMap/deid-gateway-policies"]["data"] == FULL["policies"]
    _, gateway = containers(objects)
    (mount,) = [mount for mount in gateway["volumeMounts"] if mount["name"] == "policies"]
    assert mount["mountPath"] == environment(gateway)["DEID_POLICIES"]

    def checksum(policies: dict[str, str]) -> str:
        stateful = render({"policies": policies})["StatefulSet/deid-gateway"]
        return str(stateful["spec"]["template"]["metadata"]["annotations"]["checksum/policies"])

    texts = [{}, {"a.yaml": "x: 1\n"}, {"a.yaml": "x: 2\n"}, {"b.yaml": "x: 1\n"}]
    assert len({checksum(text) for text in texts}) == 4
    assert checksum(texts[1]) == checksum(dict(texts[1]))
    assert checksum({}) == hashlib.sha256(b"{}").hexdigest()


def test_without_policies_those_of_the_image_are_used(render: Render) -> None:
    objects = render()
    assert not [key for key in objects if key.startswith("ConfigMap/")]
    assert "policies" not in {volume["name"] for volume in pod(objects)["volumes"]}
    copied = "COPY policies " + environment(containers(objects)[1])["DEID_POLICIES"]
    assert copied in (ROOT / "Dockerfile").read_text()


def test_the_chart_offers_exactly_the_settings_that_a_site_sets() -> None:
    offered = {snake(name) for name in SCHEMA["properties"]["settings"]["properties"]}
    assert offered == set(Settings.model_fields) - CHARTS_OWN


def test_every_setting_arrives_under_its_name_and_as_it_was_written(render: Render, tmp_path: Path) -> None:
    values = {
        "requireApproval": True,
        "approversNeeded": 2,
        "aeTitle": "DEID2",
        "allowedPeers": ["PACS@10.0.0.7", "CT1@*"],
        "dicomPlain": True,
        "commitment": "decision",
        "commitmentPeers": ["CT1@10.0.0.9:104"],
        "stowClients": [f"PACS@10.0.0.7#{'a' * 64}"],
        "calledAeTitles": ["LUNG", "BRAIN"],
        "privateSopClasses": ["1.3.12.2.1107.5.9.1"],
        "maxPduBytes": 16777216,
        "networkTimeoutS": 30,
        "receivers": 2,
        "maxAssociations": 7,
        "maxAssociationsPerPeer": 4,
        "maxInstancesPerS": 50,
        "maxWaitingStudies": 500,
        "minFreeBytes": 107374182400,
        "quietS": 0.25,
        "forcedCompleteS": 86400,
        "useExpectedCount": False,
        "pollS": 0.1,
        "workers": 3,
        "workerMemoryBytes": 2147483648,
        "retryLimit": 5,
        "retryBaseS": 1.5,
        "retryMaxS": 60,
        "notifyMailUrl": "smtp://mail.hospital.example:587",
        "notifyMailUser": "deid",
        "notifyMailFrom": "deid@hospital.example",
        "notifyMailTo": ["dpo@hospital.example", "ops@hospital.example"],
        "notifyEvents": ["held", "archive_down"],
        "notifyDigestS": 3600,
        "reviewOidcIssuer": "https://login.hospital.example/realms/staff",
        "reviewOidcClientId": "deid",
        "reviewOidcNameClaim": "preferred_username",
        "reviewOidcRoleClaim": "realm_access.roles",
        "reviewOidcRoles": ["reviewer=deid-reviewers", "privacy-officer=dpo"],
    }
    assert values.keys() == SCHEMA["properties"]["settings"]["properties"].keys()
    env = environment(containers(render({"settings": values}))[1])
    assert set(env) - {"DEID_HOME"} <= {f"DEID_{name.upper()}" for name in Settings.model_fields}
    read = Settings(**{name: env[f"DEID_{name.upper()}"] for name in map(snake, values)})
    for name, value in values.items():
        got = getattr(read, snake(name))
        assert got == (tuple(value) if isinstance(value, list) else value)


def test_links_to_services_do_not_pose_as_settings(render: Render) -> None:
    # Kubernetes would set DEID_GATEWAY_SERVICE_HOST, and unknown DEID_* names are refused at start.
    assert pod(render())["enableServiceLinks"] is False


def test_a_database_url_comes_from_a_secret(render: Render) -> None:
    url = environment(containers(render(FULL))[1])["DEID_DATABASE_URL"]
    assert url == {"secretKeyRef": {"name": "deid-database", "key": "url"}}
    assert "DEID_DATABASE_URL" not in environment(containers(render())[1])


def test_the_urls_of_lookup_databases_come_from_a_secret(render: Render) -> None:
    urls = environment(containers(render(FULL))[1])["DEID_LOOKUP_URLS"]
    assert urls == {"secretKeyRef": {"name": "deid-lookups", "key": "urls"}}
    assert "DEID_LOOKUP_URLS" not in environment(containers(render())[1])


def test_what_is_secret_of_messages_comes_from_a_secret(render: Render) -> None:
    env = environment(containers(render({"notify": {"existingSecret": "deid-messages"}}))[1])
    for entry in ("webhook-url", "webhook-key", "mail-password"):
        name = f"DEID_NOTIFY_{entry.replace('-', '_').upper()}"
        assert env[name] == {"secretKeyRef": {"name": "deid-messages", "key": entry, "optional": True}}
    assert not any(name.startswith("DEID_NOTIFY_") for name in environment(containers(render())[1]))


def test_a_digest_wins_over_the_tag(render: Render) -> None:
    assert {c["image"] for c in containers(render(FULL))} == {"registry.example/deid-gateway@sha256:" + "ab" * 32}
    assert {c["image"] for c in containers(render())} == {"deid-gateway:0.1.0"}
    assert {c["image"] for c in containers(render({"image": {"tag": "0.2.0"}}))} == {"deid-gateway:0.2.0"}


def test_prometheus_finds_the_metrics_when_asked_to(render: Render) -> None:
    objects = render(FULL)
    monitor = objects["ServiceMonitor/deid-gateway"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "30s"}]
    select = monitor["spec"]["selector"]["matchLabels"].items()
    assert select <= objects["Service/deid-gateway-http"]["metadata"]["labels"].items()
    assert not select <= objects["Service/deid-gateway"]["metadata"]["labels"].items()


def test_the_rule_holds_the_alerts_of_the_file_and_links_them_where_the_site_says(render: Render) -> None:
    monitor = {"alerts": True, "labels": {"release": "prometheus"}, "runbook": "https://wiki.example/deid"}
    rules = render({"serviceMonitor": monitor})["PrometheusRule/deid-gateway"]
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    file = yaml.safe_load((CHART / "rules" / "deid.yaml").read_text())
    text = json.dumps(file).replace("RUNBOOK.md#", "https://wiki.example/deid#")
    assert rules["spec"] == json.loads(text)
    assert "PrometheusRule/deid-gateway" not in render()


def test_dashboards_come_as_maps_that_the_sidecar_of_grafana_finds(render: Render) -> None:
    found = render({"dashboards": {"enabled": True}})
    for path in sorted((CHART / "dashboards").glob("*.json")):
        made = found[f"ConfigMap/deid-gateway-{path.stem}"]
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(made["data"][path.name]) == json.loads(path.read_text())
    assert not any("privacy-officer" in name for name in render())


def test_the_notes_name_what_is_still_closed(render: Render) -> None:
    render()
    assert "Nobody may send yet" in render.notes
    assert "lets nobody in yet" in render.notes
    render(FULL)
    assert "yet: set" not in render.notes
    assert "port 104" in render.notes


WRONG: dict[str, dict[str, Any]] = {
    "an unknown value": {"replicaCount": 2},
    "an unknown value below": {"service": {"port": 104}},
    "an unknown setting": {"settings": {"quietSeconds": 3}},
    "a setting that the chart decides": {"settings": {"dicomPort": 104}},
    "a key as a value": {"masterKey": {"value": "ab" * 32}},
    "no secret": {"masterKey": {"existingSecret": ""}},
    "a moving tag": {"image": {"tag": "latest"}},
    "a digest that is none": {"image": {"digest": "sha256:abc"}},
    "a peer without a host": {"settings": {"allowedPeers": ["PACS"]}},
    "peers as a text": {"settings": {"allowedPeers": "PACS@*"}},
    "a title that is too long": {"settings": {"aeTitle": "SEVENTEENLETTERSX"}},
    "a number as a text": {"settings": {"workers": "2"}},
    "a poll that is too slow": {"settings": {"pollS": 2}},
    "a port that is none": {"service": {"dicomPort": 70000}},
    "a service type that is none": {"service": {"type": "ExternalName"}},
    "a shared volume": {"persistence": {"accessMode": "ReadWriteMany"}},
    "a size without a unit": {"persistence": {"size": "100"}},
    "a policy outside its folder": {"policies": {"../routes.yaml": "x"}},
    "a policy that is no YAML file": {"policies": {"routes.json": "x"}},
    "an empty policy": {"policies": {"routes.yaml": ""}},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_refused_before_anything_is_rendered(render: Render, wrong: str) -> None:
    with pytest.raises(helm.HelmError, match=r"(?i)schema|additional properties"):
        render(WRONG[wrong])


def test_every_value_has_a_default_that_the_schema_knows() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(defaults) == set(SCHEMA["properties"]) - {"global"}
    for name, schema in SCHEMA["properties"].items():
        if "properties" in schema and name != "settings":
            assert set(defaults[name]) == set(schema["properties"]), name
