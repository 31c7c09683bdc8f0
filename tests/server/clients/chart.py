#!/usr/bin/env python3
"""Renders the Helm chart and checks the result against Kubernetes' own schemas.
Usage: chart.py CHART [CHAT_WORKER IMAGE_WORKER]

With the programs, each flag that the chart gives a worker must be in its --help.
Needs the packages helm-python-sdk (Helm's own library), kubernetes-validate and PyYAML; ends with
status 77 and a line that says so when one is missing."""

import re
import subprocess
import sys

try:
    import helm_python
    import kubernetes_validate
    import yaml
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

VERSION = "1.30"
# Kinds of operators, which Kubernetes' own schemas lack.
OPERATORS = ("monitoring.coreos.com/v1", "leaderworkerset.x-k8s.io/v1")


class OnceEach(yaml.SafeLoader):
    """Kubernetes rejects duplicate names in a mapping; PyYAML alone accepts them."""

    def construct_mapping(self, node, deep=False):
        names = [name.value for name, _ in node.value]
        assert len(names) == len(set(names)), f"a name comes twice: {names}"
        return super().construct_mapping(node, deep)


def render(chart, release="demo", **values):
    texts = chart.render(values, name=release, namespace="default")
    found = {}
    for name, text in texts.items():
        for document in yaml.load_all(text, OnceEach) if name.endswith(".yaml") else []:
            if document:
                if document["apiVersion"] not in OPERATORS:
                    kubernetes_validate.validate(document, VERSION, strict=True)
                found[document["kind"]] = document
    return found


def container(documents):
    return documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def check_chat(chart):
    documents = render(chart, replicas=3, drainSeconds=90, flags=["--max-running", "8"])
    deployment, service = documents["Deployment"], documents["Service"]
    pod = deployment["spec"]["template"]
    assert deployment["spec"]["replicas"] == 3
    assert pod["spec"]["terminationGracePeriodSeconds"] == 100
    assert service["spec"]["sessionAffinity"] == "None"
    one = render(chart, service={"sessionAffinity": "ClientIP"})["Service"]["spec"]
    assert one["sessionAffinity"] == "ClientIP" and one["ports"] == service["spec"]["ports"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    worker = container(documents)
    assert worker["image"] == "rbee:0.1.0-cpu", worker["image"]
    assert worker["command"] == ["llm-worker-rbee-cpu"]
    words = worker["args"]
    assert words[words.index("--drain-seconds") + 1] == "90" and words[-2:] == ["--max-running", "8"]
    assert "limits" not in worker["resources"], worker["resources"]
    assert worker["startupProbe"]["periodSeconds"] * worker["startupProbe"]["failureThreshold"] >= 900
    assert worker["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert worker["livenessProbe"]["httpGet"] == {"path": "/health/live", "port": "http",
                                                 "scheme": "HTTP"}


def check_gpus(chart):
    for device, resource in (("cuda", "nvidia.com/gpu"), ("rocm", "amd.com/gpu")):
        worker = container(render(chart, device=device, kind="image",
                                  resources={"limits": {"memory": "8Gi"}}))
        assert worker["resources"]["limits"] == {resource: 1, "memory": "8Gi"}, worker["resources"]
        assert worker["command"] == [f"sd-worker-{device}"]
        assert worker["image"] == f"rbee:0.1.0-{device}"


def words_after(words, flag):
    return words[words.index(flag) + 1]


def check_split_models(chart):
    """A model on the GPUs of one pod."""
    documents = render(chart, device="cuda", gpus=4)
    worker = container(documents)
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": 4}
    assert words_after(worker["args"], "--tensor-parallel-size") == "4"
    assert "--group-secret-file" not in worker["args"] and "env" in worker
    assert {"name": "shared", "mountPath": "/dev/shm"} in worker["volumeMounts"]
    volumes = documents["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}} in volumes
    for one in (render(chart, device="cuda"), render(chart, gpus=4), render(chart, device="cuda", kind="image", gpus=2)):
        assert "--tensor-parallel-size" not in container(one)["args"]
        assert [mount["name"] for mount in container(one)["volumeMounts"]] == ["models"]


def check_groups(chart):
    """A model on several pods."""
    documents = render(chart, device="cuda", gpus=2, replicas=3, startupSeconds=700, flags=["--max-running", "8"],
                       group={"size": 4, "secret": "s"}, apiKeysSecret="keys")
    assert set(documents) == {"LeaderWorkerSet", "Service"}, set(documents)
    # The fields of LeaderWorkerSetSpec and LeaderWorkerTemplate (kubernetes-sigs/lws, API v1).
    spec = documents["LeaderWorkerSet"]["spec"]
    assert spec.keys() == {"replicas", "startupPolicy", "leaderWorkerTemplate"}
    assert (spec["replicas"], spec["startupPolicy"]) == (3, "LeaderCreated")
    template = spec["leaderWorkerTemplate"]
    assert template.keys() == {"size", "restartPolicy", "leaderTemplate", "workerTemplate"}
    assert (template["size"], template["restartPolicy"]) == (4, "RecreateGroupOnPodRestart")
    for role in ("leaderTemplate", "workerTemplate"):
        kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", **template[role]}, VERSION, strict=True)
    leader, rank = (template[role]["spec"]["containers"][0] for role in ("leaderTemplate", "workerTemplate"))
    assert leader["args"] == rank["args"]
    assert words_after(rank["args"], "--tensor-parallel-size") == "8"
    assert words_after(rank["args"], "--group-seconds") == "700" and rank["args"][-2:] == ["--max-running", "8"]
    mounts = {mount["name"]: mount["mountPath"] for mount in rank["volumeMounts"]}
    assert words_after(rank["args"], "--group-secret-file") == mounts["group"] + "/secret"
    assert mounts["shared"] == "/dev/shm" and {"name": "XDG_RUNTIME_DIR", "value": "/dev/shm"} in rank["env"]
    assert {"name": "group", "secret": {"secretName": "s"}} in template["workerTemplate"]["spec"]["volumes"]
    assert rank["resources"]["limits"] == {"nvidia.com/gpu": 2}
    # The leader alone has a port; others are asked by a command.
    assert leader["livenessProbe"]["httpGet"]["path"] == "/health/live" and "lifecycle" in leader
    assert rank.keys().isdisjoint({"ports", "startupProbe", "lifecycle"})
    assert rank["livenessProbe"]["exec"]["command"] == ["rbee", "group-health"]
    assert rank["readinessProbe"]["exec"]["command"] == ["rbee", "group-health", "--ready"]
    assert "annotations" not in template["workerTemplate"]["metadata"]
    selector = documents["Service"]["spec"]["selector"]
    assert selector["leaderworkerset.sigs.k8s.io/worker-index"] == "0"
    del selector["leaderworkerset.sigs.k8s.io/worker-index"]  # which the operator adds to pods
    assert selector.items() <= template["leaderTemplate"]["metadata"]["labels"].items()

    open_group = render(chart, device="rocm", group={"size": 2, "insecure": True})["LeaderWorkerSet"]["spec"]
    pod = open_group["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    assert "--group-insecure" in pod["containers"][0]["args"]
    assert [volume["name"] for volume in pod["volumes"]] == ["models", "shared"]
    for values, why in (({"device": "cuda"}, "group.size 2 needs group.secret"),
                        ({"device": "cpu"}, "is for chats on GPUs"),
                        ({"device": "cuda", "kind": "image"}, "kind is image and device cuda")):
        try:
            render(chart, **values, group={"size": 2})
        except helm_python.HelmError as error:
            assert why in str(error), error
            continue
        raise AssertionError(f"{values} was taken")


def check_access(chart):
    """To devices that belong to a group, and to a registry with a password."""
    pod = render(chart)["Deployment"]["spec"]["template"]["spec"]
    assert "imagePullSecrets" not in pod and "supplementalGroups" not in pod["securityContext"]
    pod = render(chart, device="rocm", supplementalGroups=[44, 993],
                 image={"pullSecrets": ["1"]})["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["supplementalGroups"] == [44, 993]
    assert pod["imagePullSecrets"] == [{"name": "1"}]


def check_secrets(chart):
    documents = render(chart, apiKeysSecret="keys", tlsSecret="tls",
                       model={"path": "/models/m.gguf", "name": "m", "existingClaim": "models"},
                       nodeSelector={"disk": "fast"})
    worker = container(documents)
    mounts = {mount["name"]: mount["mountPath"] for mount in worker["volumeMounts"]}
    volumes = {volume["name"] for volume in
               documents["Deployment"]["spec"]["template"]["spec"]["volumes"]}
    assert set(mounts) == volumes == {"models", "keys", "tls"}
    words = worker["args"]
    assert words[words.index("--tls-key") + 1].startswith(mounts["tls"])
    assert words[words.index("--api-keys") + 1].startswith(mounts["keys"])
    assert worker["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"


def check_watching(chart):
    documents = render(chart)
    assert set(documents) == {"Deployment", "Service"}, set(documents)
    notes = documents["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert notes["prometheus.io/scheme"] == "http"
    documents = render(chart, tlsSecret="tls", serviceMonitor={
        "enabled": True, "interval": "10s", "keySecret": "scrape",
        "labels": {"release": "prom", "app.kubernetes.io/managed-by": "us"},
        "keyEntry": "token", "tlsConfig": {"serverName": "chat.example"}})
    assert "annotations" not in documents["Deployment"]["spec"]["template"]["metadata"]
    monitor, service = documents["ServiceMonitor"], documents["Service"]
    labels = monitor["spec"]["selector"]["matchLabels"]
    assert labels.items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"] == {
        **service["metadata"]["labels"], "release": "prom", "app.kubernetes.io/managed-by": "us"}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["scheme"] == "https" and endpoint["interval"] == "10s"
    assert endpoint["authorization"] == {"type": "Bearer",
                                         "credentials": {"name": "scrape", "key": "token"}}
    assert endpoint["tlsConfig"] == {"serverName": "chat.example"}


def check_names_like_numbers(chart):
    """Strings that YAML would read as other types stay strings."""
    documents = render(chart, release="1", apiKeysSecret="2", tlsSecret="3",
                       model={"path": "/models/m.gguf", "existingClaim": "4"},
                       serviceMonitor={"enabled": True, "interval": "0", "keySecret": "5",
                                       "keyEntry": "on"})
    monitor = documents["ServiceMonitor"]
    assert monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == "1"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["interval"] == "0", endpoint
    assert endpoint["authorization"]["credentials"] == {"name": "5", "key": "on"}, endpoint
    volumes = documents["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert [volume.get("secret", {}).get("secretName") for volume in volumes] == [None, "2", "3"]
    assert volumes[0]["persistentVolumeClaim"]["claimName"] == "4"


def check_budget(chart):
    documents = render(chart, podDisruptionBudget={"enabled": True, "maxUnavailable": "25%"})
    budget = documents["PodDisruptionBudget"]["spec"]
    labels = documents["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert budget["maxUnavailable"] == "25%"


def check_extras(chart):
    documents = render(chart, extraEnv=[{"name": "RUST_LOG", "value": "debug"}],
                       extraVolumes=[{"name": "loras", "emptyDir": {}}],
                       extraVolumeMounts=[{"name": "loras", "mountPath": "/loras"}])
    worker = container(documents)
    assert {"name": "RUST_LOG", "value": "debug"} in worker["env"]
    assert {"name": "POD_NAME"}.items() <= worker["env"][0].items()
    assert worker["volumeMounts"][-1] == {"name": "loras", "mountPath": "/loras"}
    volumes = documents["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert [volume["name"] for volume in volumes] == ["models", "loras"]


def flags_of(worker):
    out = subprocess.run([worker, "--help"], capture_output=True, text=True, check=True, timeout=600).stdout
    return set(re.findall(r"--[a-z][a-z-]*", out))


def check_flags(chart, chat_worker, image_worker):
    """The workers have the flags that the chart gives them."""
    model = {"path": "/models/m.gguf", "name": "m"}
    group = {"size": 2, "secret": "s"}
    grouped = [render(chart, device="cuda", gpus=2, model=model, group=each, apiKeysSecret="k", tlsSecret="t")
               for each in (group, {"size": 2, "insecure": True})]
    chats = [pod["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
             for pod in grouped]
    pictures = container(render(chart, kind="image", device="cuda", model=model, apiKeysSecret="k", tlsSecret="t"))
    for program, workers in ((chat_worker, chats), (image_worker, [pictures])):
        given = {word for worker in workers for word in worker["args"] if word.startswith("--")}
        assert "--model" in given and given <= flags_of(program), given - flags_of(program)


def check_wrong_values(chart):
    for values in ({"extraEnv": {"A": "b"}}, {"serviceMonitor": {"enabled": "yes"}},
                   {"serviceMonitor": {"interval": "30sec"}}, {"serviceMonitor": {"interval": "1s1m"}},
                   {"serviceMonitor": {"labels": {"release": 1}}},
                   {"supplementalGroups": ["render"]}, {"service": {"sessionAffinity": "Pod"}},
                   {"group": {"size": 0}}, {"group": {"size": "2"}}, {"group": {"insecure": "no"}},
                   {"device": "tpu"}, {"kind": "sound"}, {"drainSeconds": -1}, {"flags": "--x"}):
        try:
            chart.validate_schema(values)
        except helm_python.HelmError:
            continue
        raise AssertionError(f"{values} was taken")


def main():
    path = sys.argv[1]
    findings = [message for message in helm_python.lint(path)["messages"]
                if message["severity"] > 1]  # more than a hint
    assert not findings, findings
    with helm_python.Chart.load(path) as chart:
        check_chat(chart)
        check_gpus(chart)
        check_split_models(chart)
        check_groups(chart)
        check_access(chart)
        check_secrets(chart)
        check_watching(chart)
        check_names_like_numbers(chart)
        check_budget(chart)
        check_extras(chart)
        check_wrong_values(chart)
        if len(sys.argv) > 2:
            check_flags(chart, *sys.argv[2:])
    print("ok")


if __name__ == "__main__":
    main()
