"""The pool's Kubernetes cluster and where its hosts send metrics: kubernetes, telemetry.

The guide names these fields without giving their syntax; what is accepted is what the programs that read them accept
(kubeadm's discovery, kubelet's labels and taints, OTLP endpoints).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fleetctl.canonical import Json
from fleetctl.capacity.policy.problems import Policy, PolicyProblem, PoolContext, one_of, problem, rule
from fleetctl.model.policy_forms import integer_of
from fleetctl.units import shown

JOIN_SET = ("apiServer", "caCertSha256", "joinTokenRef")
GPU_APIS = ("device-plugin", "dra")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])"
_API_SERVER = re.compile(rf"(?:https://{_HOST}(?::[0-9]{{1,5}})?/?|{_HOST}:[0-9]{{1,5}})", re.ASCII)
_OTLP = re.compile(
    rf"(?:(?:https?|grpc)://{_HOST}(?::[0-9]{{1,5}})?(?:/[!-~]{{0,512}})?|{_HOST}:[0-9]{{1,5}})", re.ASCII
)
_SHA256 = re.compile(r"(?:sha256:)?[0-9a-fA-F]{64}", re.ASCII)
_REFERENCE = re.compile(r"[a-z][a-z0-9+.-]{0,31}:[!-~]{1,512}", re.ASCII)
_VERSION = re.compile(r"v?[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,4})?(?:[-+][0-9A-Za-z.+-]{1,64})?", re.ASCII)
_LABEL_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_LABEL_NAME}", re.ASCII)
_LABEL_VALUE = re.compile(rf"(?:{_LABEL_NAME})?", re.ASCII)
_ATTRIBUTE = re.compile(r"[!-~]{1,255}", re.ASCII)

JOIN = rule(
    "policy-kubernetes-join",
    "kubernetes has some of apiServer, caCertSha256 and joinTokenRef but not all",
    trigger="kubernetes: {apiServer: …, caCertSha256: …}",
)
PLATFORM = rule(
    "policy-kubernetes-platform",
    "The hosts of a site that is not custom would join a cluster that the platform does not operate",
    trigger="apiServer, caCertSha256 and joinTokenRef on a shared site without platformOperated: true",
)
GPU_API = rule(
    "policy-kubernetes-gpu-api",
    "kubernetes.gpuApi is neither device-plugin nor dra",
    trigger="kubernetes: {gpuApi: cdi}",
)
KUBERNETES = rule(
    "policy-kubernetes",
    "A kubernetes field holds what a cluster cannot use",
    trigger="caCertSha256 that is no SHA-256, a label or a taint that kubelet refuses",
)
TELEMETRY = rule(
    "policy-telemetry",
    "A telemetry field holds what no exporter can use",
    trigger="telemetry: {intervalSeconds: 0}",
)


def check(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    """The rules of better-compute 4B and 4D for kubernetes and telemetry."""
    cluster, telemetry = policy.get("kubernetes", {}), policy.get("telemetry", {})
    assert isinstance(cluster, dict)
    assert isinstance(telemetry, dict)
    yield from _join(cluster, pool)
    yield from _cluster_texts(cluster)
    yield from _labels(cluster)
    yield from _taints(cluster)
    yield from _telemetry(telemetry)


def _join(cluster: Mapping[str, Json], pool: PoolContext) -> Iterator[PolicyProblem]:
    given = [name for name in JOIN_SET if name in cluster]
    if given and len(given) < len(JOIN_SET):
        missing = [name for name in JOIN_SET if name not in cluster]
        yield problem(
            JOIN,
            ("kubernetes",),
            f"{' and '.join(given)} without {' and '.join(missing)}; give all three, or none of them for a pool whose "
            "daemon runs as a DaemonSet in the cluster",
        )
    if len(given) == len(JOIN_SET) and pool.site_kind not in ("custom", None):
        if not pool.platform_owned:
            yield problem(
                PLATFORM,
                ("kubernetes",),
                f"on a {pool.site_kind} site only a pool of the platform may join hosts to a cluster, and platformOperated "
                "counts on no other; remove apiServer, caCertSha256 and joinTokenRef, or use a custom site",
            )
        elif cluster.get("platformOperated") is not True:
            yield problem(
                PLATFORM,
                ("kubernetes",),
                f"the site is {pool.site_kind}; write platformOperated: true if the platform operates the cluster",
            )


def _cluster_texts(cluster: Mapping[str, Json]) -> Iterator[PolicyProblem]:
    api = cluster.get("gpuApi")
    if api is not None and api not in GPU_APIS:
        yield problem(GPU_API, ("kubernetes", "gpuApi"), f"{shown(str(api))} is not known; write {one_of(GPU_APIS)}")
    for name, form, mend in (
        ("apiServer", _API_SERVER, "write https://host:6443 or host:6443"),
        ("caCertSha256", _SHA256, "write the 64 hex digits of the CA certificate's public key hash"),
        ("joinTokenRef", _REFERENCE, "write a reference scheme:path, never the token itself"),
        ("kubernetesVersion", _VERSION, "write a version such as 1.31.2"),
    ):
        value = cluster.get(name)
        if isinstance(value, str) and not form.fullmatch(value):
            yield problem(KUBERNETES, ("kubernetes", name), f"{_quoted(name, value)} does not fit; {mend}")


def _labels(cluster: Mapping[str, Json]) -> Iterator[PolicyProblem]:
    labels = cluster.get("labels", {})
    assert isinstance(labels, dict)
    for name, value in labels.items():
        if not _LABEL_KEY.fullmatch(name) or not _LABEL_VALUE.fullmatch(str(value)):
            yield problem(
                KUBERNETES,
                ("kubernetes", "labels", name),
                f"{shown(f'{name}={value}')} is no label; use [prefix/]name and a value of at most 63 letters, digits, -, _ and .",
            )


def _taints(cluster: Mapping[str, Json]) -> Iterator[PolicyProblem]:
    taints = cluster.get("taints", [])
    assert isinstance(taints, list)
    for index, taint in enumerate(taints):
        if not _is_taint(taint):
            yield problem(
                KUBERNETES,
                ("kubernetes", "taints", index),
                f"not a taint; write {{key: …, value: …, effect: …}} or key=value:effect with effect {one_of(TAINT_EFFECTS)}",
            )


def _is_taint(taint: Json) -> bool:
    if isinstance(taint, str):
        assigned, _, effect = taint.rpartition(":")
        key, _, value = assigned.partition("=")
    elif isinstance(taint, dict) and taint.keys() <= {"key", "value", "effect"}:
        parts = [taint.get("key"), taint.get("value", ""), taint.get("effect")]
        if not all(isinstance(part, str) for part in parts):
            return False
        key, value, effect = (str(part) for part in parts)
    else:
        return False
    return bool(_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)) and effect in TAINT_EFFECTS


def _telemetry(telemetry: Mapping[str, Json]) -> Iterator[PolicyProblem]:
    if "intervalSeconds" in telemetry and integer_of(telemetry["intervalSeconds"]) == 0:
        yield problem(TELEMETRY, ("telemetry", "intervalSeconds"), "0 is no interval; write 1 or more seconds")
    for name, form, mend in (
        ("otlpEndpoint", _OTLP, "write https://host:port or host:port, without credentials"),
        ("headersRef", _REFERENCE, "write a reference scheme:path, never the headers themselves"),
    ):
        value = telemetry.get(name)
        if isinstance(value, str) and not form.fullmatch(value):
            yield problem(TELEMETRY, ("telemetry", name), f"{_quoted(name, value)} does not fit; {mend}")
    attributes = telemetry.get("resourceAttributes", {})
    assert isinstance(attributes, dict)
    for name in attributes:
        if not _ATTRIBUTE.fullmatch(name):
            yield problem(
                TELEMETRY,
                ("telemetry", "resourceAttributes", name),
                f"{shown(name)} is no attribute name; use printable ASCII without spaces",
            )


def _quoted(name: str, value: str) -> str:
    """A refused value for a message; one that may be a secret is not repeated."""
    return "the value" if name.endswith("Ref") or "@" in value else shown(value)
