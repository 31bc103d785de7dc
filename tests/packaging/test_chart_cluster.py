"""The chart where several processes share the work: a Deployment for each role, its doors, its size."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.app.review.page import origins, require_private
from gateway.process_settings import ROLES
from gateway.settings import Settings
from tests.packaging.rendering import VERSIONS, Render, environment, helm, kubernetes_validate

DIGESTS = {"site-1.yaml": "ab" * 32, "site-1.safetensors": "cd" * 32}
CLUSTER: dict[str, Any] = {
    "database": {"existingSecret": "deid-database"},
    "persistence": {"storageClass": "cephfs", "size": "2Ti"},
    "tls": {"existingSecret": "deid-tls", "dicomweb": True},
    "destinations": {"existingSecret": "deid-destinations"},
    "weights": {"existingClaim": "deid-weights", "sha256": DIGESTS},
    "review": {
        "enabled": True,
        "host": "deid.hospital.example",
        "oidcSecret": "deid-oidc",
        "oidcCa": True,
        "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "deid-review-tls"},
    },
    "settings": {
        "workers": 3,
        "reviewOidcIssuer": "https://login.hospital.example",
        "reviewOidcClientId": "deid",
        "reviewOidcRoles": ["reviewer=deid-reviewers"],
    },
    "networkPolicy": {"reviewFrom": [{"podSelector": {}}]},
    "cluster": {
        "enabled": True,
        "prometheus": "http://prometheus.monitoring:9090",
        "roles": {
            "receive": {"replicas": 3},
            "work-cpu": {"autoscale": {"by": "keda", "maxReplicas": 6, "queueAgeS": 300}},
            "work-gpu": {
                "enabled": True,
                "image": {"digest": "sha256:" + "ef" * 32},
                "autoscale": {"by": "hpa", "maxReplicas": 4},
            },
        },
    },
}
CUSTOM = ("ScaledObject/", "ServiceMonitor/", "PrometheusRule/")  # custom resources, without a schema here


def deployment(objects: dict[str, Any], role: str) -> dict[str, Any]:
    return dict(objects[f"Deployment/deid-gateway-{role}"]["spec"])


def gateway(objects: dict[str, Any], role: str) -> dict[str, Any]:
    (container,) = deployment(objects, role)["template"]["spec"]["containers"]
    return dict(container)


def read(container: dict[str, Any]) -> Settings:
    """Settings as the gateway reads them in that container, with a database where the Secret names one."""
    env = environment(container) | {"DEID_DATABASE_URL": "postgresql://deid@db/deid"}
    return Settings(
        **{name: env[f"DEID_{name.upper()}"] for name in Settings.model_fields if f"DEID_{name.upper()}" in env}
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_rendered_is_valid_for_kubernetes(render: Render, version: str) -> None:
    for key, part in render(CLUSTER).items():
        if not key.startswith(CUSTOM):
            kubernetes_validate.validate(part, version, strict=True)


def test_each_role_has_a_deployment_and_the_one_pod_is_gone(render: Render) -> None:
    objects = render(CLUSTER)
    assert {key for key in objects if key.startswith("Deployment/")} == {
        f"Deployment/deid-gateway-{role}" for role in ROLES
    }
    assert not [key for key in objects if key.startswith("StatefulSet/")]
    for role in ROLES:
        values = read(gateway(objects, role))
        assert values.roles == (role,)
        assert values.clustered
        labels = deployment(objects, role)["template"]["metadata"]["labels"]
        assert deployment(objects, role)["selector"]["matchLabels"].items() <= labels.items()
        assert labels["app.kubernetes.io/component"] == role


def test_without_workers_for_gpus_the_others_do_that_work(render: Render) -> None:
    objects = render({"database": {"existingSecret": "db"}, "cluster": {"enabled": True}})
    assert sorted(key for key in objects if key.startswith("Deployment/")) == [
        "Deployment/deid-gateway-receive",
        "Deployment/deid-gateway-work-cpu",
    ]
    values = read(gateway(objects, "work-cpu"))
    assert values.plays("work-gpu")
    assert values.roles == ("work-cpu", "work-gpu")


def test_all_share_one_home_that_outlives_the_release(render: Render) -> None:
    objects = render(CLUSTER)
    claim = objects["PersistentVolumeClaim/deid-gateway-home"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["storageClassName"] == "cephfs"
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    named = render({**CLUSTER, "persistence": {"existingClaim": "site-home"}})
    assert not [key for key in named if key.startswith("PersistentVolumeClaim/")]
    for found, name in ((objects, "deid-gateway-home"), (named, "site-home")):
        for role in ROLES:
            volumes = deployment(found, role)["template"]["spec"]["volumes"]
            assert {"name": "home", "persistentVolumeClaim": {"claimName": name}} in volumes


def test_no_container_of_any_role_may_do_more_than_it_must(render: Render) -> None:
    objects = render(CLUSTER)
    for role in ROLES:
        pod = deployment(objects, role)["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for container in [*pod["initContainers"], *pod["containers"]]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
            assert writable == {"/var/lib/deid", "/tmp"}


def test_services_lead_to_the_role_that_listens(render: Render) -> None:
    objects = render(CLUSTER)
    for service, role, ports in (
        ("deid-gateway", "receive", {"dicom", "dicom-tls", "dicomweb"}),
        ("deid-gateway-review", "web", {"review"}),
    ):
        spec = objects[f"Service/{service}"]["spec"]
        assert spec["selector"]["app.kubernetes.io/component"] == role
        assert {port["targetPort"] for port in spec["ports"]} == ports
        for other in ROLES:
            listens = {port["name"] for port in gateway(objects, other)["ports"]}
            assert listens == ({"http"} | ports if other == role else listens - ports)
    # Metrics are those of every process.
    assert "app.kubernetes.io/component" not in objects["Service/deid-gateway-http"]["spec"]["selector"]
    assert "publishNotReadyAddresses" not in objects["Service/deid-gateway"]["spec"]


def test_a_drain_takes_one_pod_of_a_role_at_a_time(render: Render) -> None:
    objects = render(CLUSTER)
    for role in ROLES:
        budget = objects[f"PodDisruptionBudget/deid-gateway-{role}"]["spec"]
        assert budget == {"maxUnavailable": 1, "selector": deployment(objects, role)["selector"]}
        rolls = deployment(objects, role)["strategy"]["rollingUpdate"]
        assert rolls == {"maxSurge": 0 if role == "work-gpu" else 1, "maxUnavailable": 1 if role == "work-gpu" else 0}
    assert not [key for key in render() if key.startswith("PodDisruptionBudget/")]


def test_a_gpu_is_asked_for_where_it_is_needed_and_nowhere_else(render: Render) -> None:
    objects = render(CLUSTER)
    for role in ROLES:
        container = gateway(objects, role)
        asks = "nvidia.com/gpu" in container["resources"]["limits"]
        assert asks is (role == "work-gpu")
        tolerates = [one["key"] for one in deployment(objects, role)["template"]["spec"].get("tolerations", [])]
        assert tolerates == (["nvidia.com/gpu"] if asks else [])
        assert container["image"] == ("deid-gateway@sha256:" + "ef" * 32 if asks else "deid-gateway:0.1.0")
        assert read(container).workers == (1 if asks else 3)  # the role's own over those of all


def test_workers_grow_with_the_age_of_the_queue(render: Render) -> None:
    objects = render(CLUSTER)
    keda = objects["ScaledObject/deid-gateway-work-cpu"]["spec"]
    assert keda["scaleTargetRef"]["name"] == "deid-gateway-work-cpu"
    assert (keda["minReplicaCount"], keda["maxReplicaCount"]) == (2, 6)
    (trigger,) = keda["triggers"]
    assert trigger["metricType"] == "AverageValue"  # pods = age / threshold
    assert trigger["metadata"] == {
        "serverAddress": "http://prometheus.monitoring:9090",
        "query": 'max(deid_oldest_unfinished_seconds{namespace="imaging",service="deid-gateway-http"})',
        "threshold": "300",
        "ignoreNullValues": "false",
    }
    hpa = objects["HorizontalPodAutoscaler/deid-gateway-work-gpu"]["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (1, 4)
    (metric,) = hpa["metrics"]
    assert metric["external"]["metric"]["name"] == "deid_oldest_unfinished_seconds"
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "1800"}
    for role in ROLES:  # else each upgrade would undo what the scaler did
        assert ("replicas" in deployment(objects, role)) is (not role.startswith("work"))
    assert deployment(objects, "receive")["replicas"] == 3


def test_the_review_page_is_reached_by_tls_under_its_name_alone(render: Render) -> None:
    objects = render(CLUSTER)
    ingress = objects["Ingress/deid-gateway-review"]
    assert ingress["spec"]["tls"] == [{"hosts": ["deid.hospital.example"], "secretName": "deid-review-tls"}]
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "deid.hospital.example"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": "deid-gateway-review", "port": {"name": "review"}}
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/affinity"] == "cookie"
    assert objects["Service/deid-gateway-review"]["spec"]["sessionAffinity"] == "ClientIP"
    values = read(gateway(objects, "web"))
    require_private(values)
    assert origins(values, 8081) == ("https://deid.hospital.example",)
    assert values.review_port == 8081
    assert str(values.review_oidc_secret_file) == "/etc/deid/oidc/client-secret"
    assert str(values.review_oidc_ca) == "/etc/deid/oidc/ca.crt"
    (opened,) = objects["NetworkPolicy/deid-gateway"]["spec"]["ingress"]
    assert opened == {"from": [{"podSelector": {}}], "ports": [{"port": 8081, "protocol": "TCP"}]}


def test_the_one_pod_may_have_a_review_page_too_and_has_none_unasked(render: Render) -> None:
    page = {"enabled": True, "host": "deid.hospital.example", "tlsSecret": "page-tls"}
    objects = render({"review": page})
    (container,) = objects["StatefulSet/deid-gateway"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "review", "containerPort": 8081, "protocol": "TCP"} in container["ports"]
    assert environment(container)["DEID_REVIEW_TLS_KEY"] == "/etc/deid/review-tls/tls.key"
    assert "app.kubernetes.io/component" not in objects["Service/deid-gateway-review"]["spec"]["selector"]
    assert "Ingress/deid-gateway-review" not in objects
    plain = render({"networkPolicy": {"reviewFrom": [{"podSelector": {}}]}})
    assert plain["NetworkPolicy/deid-gateway"]["spec"]["ingress"] == []
    (container,) = plain["StatefulSet/deid-gateway"]["spec"]["template"]["spec"]["containers"]
    assert not [name for name in environment(container) if name.startswith("DEID_REVIEW")]


def test_an_ingress_is_told_when_the_page_speaks_tls_itself(render: Render) -> None:
    def annotations(**own: Any) -> dict[str, str]:
        ingress = {"enabled": True, "tlsSecret": "ingress-tls", "annotations": own.pop("annotations", {})}
        objects = render({"review": {"enabled": True, "host": "a.example", "ingress": ingress, **own}})
        return dict(objects["Ingress/deid-gateway-review"]["metadata"]["annotations"])

    affinity, protocol = "nginx.ingress.kubernetes.io/affinity", "nginx.ingress.kubernetes.io/backend-protocol"
    assert annotations() == {affinity: "cookie"}
    assert annotations(tlsSecret="page-tls") == {affinity: "cookie", protocol: "HTTPS"}
    own = {affinity: "cookie", protocol: "GRPCS"}
    assert annotations(tlsSecret="page-tls", annotations={protocol: "GRPCS"}) == own


def test_secrets_of_destinations_are_files_for_reading(render: Render) -> None:
    container = gateway(render(CLUSTER), "work-cpu")
    mount = {"name": "destinations", "mountPath": "/etc/deid/destinations", "readOnly": True}
    assert mount in container["volumeMounts"]


@pytest.mark.parametrize("values", [{}, CLUSTER], ids=["one pod", "cluster"])
def test_a_change_of_policies_rolls_every_pod(render: Render, values: dict[str, Any]) -> None:
    def checksums(text: str) -> set[str]:
        objects = render({**values, "policies": {"routes.yaml": text}})
        kinds = ("Deployment/", "StatefulSet/")
        return {
            part["spec"]["template"]["metadata"]["annotations"]["checksum/policies"]
            for key, part in objects.items()
            if key.startswith(kinds)
        }

    one, other = checksums("routes: []\n"), checksums("routes: [] # other\n")
    assert len(one) == len(other) == 1
    assert one != other


WRONG: dict[str, dict[str, Any]] = {
    "a cluster without PostgreSQL": {"cluster": {"enabled": True}},
    "a role that is none": {"cluster": {"roles": {"work": {"replicas": 1}}}},
    "no pod of a role": {"cluster": {"roles": {"receive": {"replicas": 0}}}},
    "a receiver by the age of the queue": {"cluster": {"roles": {"receive": {"autoscale": {"by": "keda"}}}}},
    "a moving tag of a role": {"cluster": {"roles": {"work-gpu": {"image": {"tag": "latest"}}}}},
    "an unknown setting of a role": {"cluster": {"roles": {"web": {"settings": {"roles": ["all"]}}}}},
    "a scaler that is none": {"cluster": {"roles": {"work-cpu": {"autoscale": {"by": "vpa"}}}}},
    "a page without a name": {"review": {"enabled": True}},
    "an ingress in the clear": {"review": {"enabled": True, "host": "a.example", "ingress": {"enabled": True}}},
    "a page in the clear on every node": {"review": {"enabled": True, "host": "a.example", "serviceType": "NodePort"}},
    "a page by its address": {"review": {"enabled": True, "host": "https://a.example"}},
    "a provider in the clear": {"settings": {"reviewOidcIssuer": "http://login.example"}},
    "weights that nobody vouches for": {"weights": {"existingClaim": "w"}},
    "weights outside their folder": {"weights": {"existingClaim": "w", "sha256": {"../a": "ab" * 32}}},
    "a digest that is none": {"weights": {"existingClaim": "w", "sha256": {"a.yaml": "ab"}}},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_refused_before_anything_is_rendered(render: Render, wrong: str) -> None:
    with pytest.raises(helm.HelmError, match=r"(?i)schema|additional properties"):
        render(WRONG[wrong])
