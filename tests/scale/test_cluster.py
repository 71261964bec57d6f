"""A Ray cluster of several nodes on this machine, some of which are lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import ModelError, OptionError
from stockade.scale.cluster import RayCarrier
from stockade.scale.leases import Lost, Result, share
from tests.scale.test_leases import numbers, squares
from tests.scale.toys import Squares

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    ray.shutdown()
    cluster.shutdown()  # type: ignore[no-untyped-call]


def test_nodes_that_are_lost_cost_only_what_they_had_not_finished(cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    cluster.wait_for_nodes()
    outcomes = share(Squares(slow=0.02), numbers(300), RayCarrier(cluster.address), 4, size=300)
    found = list(itertools.islice(outcomes, 40))
    for node in nodes[:2]:
        cluster.remove_node(node, allow_graceful=False)
    found += list(outcomes)
    assert squares(found) == {str(n): n * n for n in range(300)}


def test_a_node_that_joins_later_takes_part(cluster: Any) -> None:
    outcomes = share(Squares(slow=0.05), numbers(400), RayCarrier(cluster.address), 2, size=400)
    found = list(itertools.islice(outcomes, 5))
    assert len({outcome.worker for outcome in found if isinstance(outcome, Result)}) == 1  # there is room for one
    cluster.add_node(num_cpus=1)
    found += list(outcomes)
    assert {outcome.worker for outcome in found if isinstance(outcome, Result)} == {0, 1}
    assert len(squares(found)) == 400


def test_items_that_kill_actors_are_lost_and_errors_are_raised(cluster: Any) -> None:
    outcomes = list(share(Squares(kills=frozenset({3})), numbers(6), RayCarrier(cluster.address), 1, size=6))
    assert [outcome.key for outcome in outcomes if isinstance(outcome, Lost)] == ["3"]
    with pytest.raises(ModelError, match="no such model"):
        list(share(Squares(cannot_open=True), numbers(6), RayCarrier(cluster.address), 1))


def test_an_attack_on_a_cluster_finds_what_one_process_finds(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(num_cpus=1)
    rows: dict[str, Any] = {"limit": 12, "similarity": False, "batch_tokens": 2048}
    alone = st.attack("builtin:sentiment-cnn", "builtin:reviews", "pwws", out=tmp_path / "one", **rows)
    attack: dict[str, Any] = {"workers": 2, "ray": cluster.address, **rows}
    together = st.attack("builtin:sentiment-cnn", "builtin:reviews", "pwws", out=tmp_path / "two", **attack)
    assert list(together.rows()) == list(alone.rows())


def test_a_cluster_that_is_not_there_is_said_in_a_sentence() -> None:
    with pytest.raises(OptionError, match=r"There is no Ray cluster at 127\.0\.0\.1:1"):
        RayCarrier("127.0.0.1:1")
