"""The network between the gateway and its database loses everything for a while, and nobody is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from chaos_archive import moody_archive
from chaos_gateway import Gateways
from chaos_invariants import Evidence, judge
from chaos_postgres import namespace, postgres_server
from chaos_run import SETTINGS
from chaos_studies import Pacs
from peers import need, wait_until
from running import policies_for

from gateway.settings import Home

CUT_S = 4.0


@pytest.mark.peer
@pytest.mark.timeout(300)
def test_nothing_is_acknowledged_while_the_database_is_out_of_reach_and_nothing_is_lost_after(
    home: Home, tmp_path: Path
) -> None:
    need("postgres")
    with namespace() as network:
        if network is None:
            pytest.skip("network namespaces need root")
        with postgres_server(network) as server, moody_archive(1, silence_s=4.0) as archive:
            url = f"postgresql+psycopg://gateway@{server.host}:{server.port}/gateway"
            policies = policies_for(tmp_path / "policies", archive.url)
            gateways = Gateways(home, policies, {**SETTINGS, "DEID_DATABASE_URL": url})
            pacs = Pacs(seed=1, studies=6, ports=lambda: gateways.dicom_ports)
            gateways.start()
            try:
                pacs.start()
                pacs.allow(2)
                wait_until(lambda: bool(pacs.acknowledged), seconds=60, what="the first object was acknowledged")
                network.cut()
                time.sleep(0.5)  # what was said before is on its way
                before = len(pacs.acknowledged)
                pacs.allow(2)
                time.sleep(CUT_S)
                assert len(pacs.acknowledged) == before
                network.mend()
                assert pacs.finish(120)
                gateways.revive(all)
                wait_until(lambda: gateways.idle(url), seconds=120, what="every study is at its end")
            finally:
                pacs.stop()
                gateways.stop()
            assert judge(Evidence(home, url, pacs.acknowledged, archive.arrivals)).any() == {}
            assert gateways.ends(url)["sent"] > 0
