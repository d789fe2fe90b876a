"""What the controller is given in a cluster: enough for what the adapter asks, and no right to delete anybody's pod."""

from pathlib import Path

import yaml

RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"


def rights() -> set[tuple[str, str, str]]:
    """Group, resource and verb of all that is given."""
    (role,) = [each for each in yaml.safe_load_all(RBAC.read_text()) if each["kind"] == "ClusterRole"]
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_all_that_the_adapter_asks_is_given() -> None:
    asked = {
        *(("", "nodes", verb) for verb in ("get", "list", "watch", "patch")),
        ("", "nodes/status", "patch"),
        ("", "pods", "list"),
        ("", "pods/eviction", "create"),
        ("resource.k8s.io", "resourceslices", "list"),
        *(("resource.k8s.io", "devicetaintrules", verb) for verb in ("list", "create", "delete")),
    }
    assert rights() == asked


def test_pods_are_evicted_and_never_deleted() -> None:
    assert not {verb for _, resource, verb in rights() if resource == "pods"} & {"delete", "deletecollection", "patch"}
