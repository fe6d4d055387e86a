#!/usr/bin/env python3
"""Usage: ci/python/manifests.py FOLDER TABLE

Validates the manifests in FOLDER strictly against the schemas of Kubernetes that kubernetes-validate brings along, of
the oldest and the newest version in VERSIONS. It has none of JobSet and MPIJob: of these, the Jobs and pods inside are
validated, and the fields around them are compared with those in CUSTOM. Then it checks what schemas cannot: that
numbers of ranks, names of rank 0, secrets and variables (TABLE, the table of launchers in Rust) belong together. At the
end it damages each manifest in the ways of DAMAGES, all of which must be refused. Exit code 1 if anything is wrong.
"""

import copy
import re
import sys
from pathlib import Path

import kubernetes_validate
import yaml

VERSIONS = ("1.27", "1.37")
# The fields of the reference documentation that a manifest of ours may have, by kind: a path, and the names below it.
CUSTOM = {
    "JobSet": {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "spec": {"network", "failurePolicy", "replicatedJobs", "successPolicy", "startupPolicy", "suspend"},
        "spec.network": {"enableDNSHostnames", "publishNotReadyAddresses", "subdomain"},
        "spec.failurePolicy": {"maxRestarts"},
    },
    "MPIJob": {
        "apiVersion": "kubeflow.org/v2beta1",
        "spec": {"mpiImplementation", "slotsPerWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath",
                 "launcherCreationPolicy"},
        "spec.runPolicy": {"cleanPodPolicy", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"},
        "spec.mpiReplicaSpecs": {"Launcher", "Worker"},
    },
}


class Wrong(Exception):
    """What is wrong with a manifest."""


def at(document, path):
    """What is below a path with dots."""
    for name in path.split("."):
        document = document[name]
    return document


def expect(is_so, what):
    if not is_so:
        raise Wrong(what)


def only(names, allowed, where):
    unknown = set(names) - set(allowed)
    expect(not unknown, f"{where}: unknown fields {sorted(unknown)}")


def validate(document):
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            raise Wrong(f"Kubernetes {version}: {document.get('kind')}: {str(error).splitlines()[0]}") from error


def validate_custom(document):
    """Jobs and pods inside of a kind that the validator does not know."""
    kind = document["kind"]
    fields = CUSTOM[kind]
    expect(document["apiVersion"] == fields["apiVersion"], f"{kind}: {document['apiVersion']}")
    only(document, {"apiVersion", "kind", "metadata", "spec"}, kind)
    for path, names in fields.items():
        if path != "apiVersion":
            only(at(document, path), names, f"{kind}: {path}")
    if kind == "JobSet":
        for job in document["spec"]["replicatedJobs"]:
            only(job, {"name", "replicas", "template"}, "JobSet: replicatedJobs")
            only(job["template"], {"metadata", "spec"}, "JobSet: template")
            validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]},
                      "spec": job["template"]["spec"]})
    else:
        for name, replica in document["spec"]["mpiReplicaSpecs"].items():
            only(replica, {"replicas", "restartPolicy", "template"}, f"MPIJob: {name}")
            template = replica["template"]
            validate({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name.lower()},
                      "template": template})


def container_of(template):
    containers = template["spec"]["containers"]
    expect(len(containers) == 1, "a pod has one container")
    return containers[0]


def variables(container):
    return {variable["name"]: variable.get("value") for variable in container.get("env", ())}


def check_job(job, name_of_rank_0, table):
    """The ranks of an Indexed Job, and how they find rank 0."""
    expect(job["completionMode"] == "Indexed", "the Job is not Indexed")
    container = container_of(job["template"])
    values = variables(container)
    expect(str(job["completions"]) == str(job["parallelism"]) == values.get("HCABENCH_RANKS"),
           f"completions {job['completions']}, parallelism {job['parallelism']}, "
           f"HCABENCH_RANKS {values.get('HCABENCH_RANKS')}")
    host, _, port = (values.get("HCABENCH_RENDEZVOUS") or "").partition(":")
    expect(host == name_of_rank_0, f"rank 0 is {name_of_rank_0}, and HCABENCH_RENDEZVOUS {host}")
    expect(port.isdigit(), "HCABENCH_RENDEZVOUS has no port")
    for name in values:
        expect(name == "HCABENCH_SECRET" or f'"{name}"' in table, f"{name} is not in the table of launchers")
    return port


def check_pod(template, secrets, claims):
    """What a pod that measures needs."""
    networks = template["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/networks")
    by_host = template["spec"].get("hostNetwork") is True
    expect(bool(networks) != by_host, "neither the network of the node nor a secondary one, or both")
    by_cluster = template["spec"].get("dnsPolicy") == "ClusterFirstWithHostNet"
    expect(by_host == by_cluster, "names are not looked up in the cluster")
    container = container_of(template)
    limits = container["resources"]["limits"]
    expect(any(name.startswith("rdma/") for name in limits), "no RDMA resource")
    expect(any(name.startswith("hugepages-") for name in limits), "no huge pages")
    expect("IPC_LOCK" in container["securityContext"]["capabilities"]["add"], "no IPC_LOCK")
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    expect(mounted == volumes, f"volumes {sorted(volumes)}, mounted {sorted(mounted)}")
    for volume in template["spec"]["volumes"]:
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        expect(claim in claims, f"the results are lost with the pod: there is no claim {claim}")
    check_secret(container, secrets)


def check_secret(container, secrets):
    for variable in container.get("env", ()):
        if "secretKeyRef" in variable.get("valueFrom", {}):
            reference = variable["valueFrom"]["secretKeyRef"]
            expect((reference["name"], reference["key"]) in secrets, f"there is no secret {reference}")


def check(documents, table):
    """All manifests: pairs of a file's name and a document."""
    secrets = {(document["metadata"]["name"], key) for _, document in documents
               if document["kind"] == "Secret" for key in document["stringData"]}
    expect(secrets, "there is no Secret")
    claims = {document["metadata"]["name"] for _, document in documents
              if document["kind"] == "PersistentVolumeClaim" and document["spec"]["accessModes"] == ["ReadWriteMany"]}
    services = {document["metadata"]["name"]: document["spec"] for _, document in documents
                if document["kind"] == "Service"}
    for file, document in documents:
        try:
            check_document(document, secrets, claims, services, table)
        except Wrong as wrong:
            raise Wrong(f"{file}: {wrong}") from wrong
        except (KeyError, IndexError) as missing:
            raise Wrong(f"{file}: {document.get('kind')}: there is no {missing}") from missing


def check_document(document, secrets, claims, services, table):
    kind, name = document["kind"], document["metadata"]["name"]
    if kind in CUSTOM:
        validate_custom(document)
    else:
        validate(document)
    spec = document.get("spec", {})
    if kind == "Job":
        subdomain = spec["template"]["spec"]["subdomain"]
        expect(subdomain in services, f"there is no Service {subdomain}")
        service = services[subdomain]
        expect(service["clusterIP"] == "None", f"the Service {subdomain} is not headless")
        expect(service["publishNotReadyAddresses"] is True, "rank 0 is not found before it is ready")
        expect(service["selector"] == {"job-name": name}, f"the Service selects {service['selector']}")
        port = check_job(spec, f"{name}-0.{subdomain}", table)
        expect(port == str(service["ports"][0]["port"]), f"port {port} is not that of the Service")
        check_pod(spec["template"], secrets, claims)
    elif kind == "JobSet":
        [job] = spec["replicatedJobs"]
        expect(job["replicas"] == 1, "several Jobs have the same indices")
        expect(spec["network"]["enableDNSHostnames"] is True, "the pods have no names")
        subdomain = spec["network"].get("subdomain", name)
        check_job(job["template"]["spec"], f"{name}-{job['name']}-0-0.{subdomain}", table)
        check_pod(job["template"]["spec"]["template"], secrets, claims)
    elif kind == "MPIJob":
        launcher, worker = (spec["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))
        container = container_of(launcher["template"])
        command, words = container["command"], container["args"]
        ranks = int(command[command.index("-np") + 1])
        expect(ranks == worker["replicas"] * spec["slotsPerWorker"], f"{ranks} ranks, {worker['replicas']} workers")
        host = words[words.index("--rendezvous") + 1]
        expect(host == f"{name}-worker-0.{name}", f"rank 0 is not at {host}")
        for variable in variables(container):
            expect(variable in command, f"mpirun does not pass {variable} on")
        check_secret(container, secrets)
        check_pod(worker["template"], secrets, claims)
        expect(spec["launcherCreationPolicy"] == "WaitForWorkersReady", "mpirun does not wait for the workers")
        expect("tcpSocket" in container_of(worker["template"])["readinessProbe"], "a worker is ready before its sshd")
    elif kind == "Secret":
        # A secret that anyone can read here must not be one that hcabench takes.
        expect(all(len(value) < 16 for value in document["stringData"].values()), "the secret is not too short")
    else:
        expect(kind in ("Service", "PersistentVolumeClaim"), f"{kind} is not checked")


JOB = "spec.template.spec."
OF_SET = "spec.replicatedJobs.0.template.spec."
WORKER = "spec.mpiReplicaSpecs.Worker."
LAUNCHER = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0."
# A kind, what is damaged in it, the value (None: it is removed), and what the message must have.
DAMAGES = (
    ("Job", "spec.completions", 5, "completions 5, parallelism 4"),
    ("Job", "spec.completions", "four", "'four' is not of type 'integer'"),
    ("Job", "spec.parallelism", 3, "parallelism 3, HCABENCH_RANKS 4"),
    ("Job", "spec.completionMode", "NonIndexed", "not Indexed"),
    ("Job", "spec.backoffLimits", 0, "'backoffLimits' was unexpected"),
    ("Job", JOB + "subdomain", "other", "no Service other"),
    ("Job", JOB + "restartPolicies", "Never", "'restartPolicies' was unexpected"),
    ("Job", JOB + "hostNetwork", False, "nor a secondary one"),
    ("Job", JOB + "hostNetwork", None, "nor a secondary one"),
    ("Job", JOB + "dnsPolicy", None, "not looked up in the cluster"),
    ("Job", "spec.template.metadata.annotations", {"k8s.v1.cni.cncf.io/networks": "rdma"}, "or both"),
    ("Job", JOB + "containers.0.env.1.value", "hcabench-1.hcabench:19016", "rank 0 is hcabench-0.hcabench, and"),
    ("Job", JOB + "containers.0.env.1.value", "hcabench-0.hcabench", "has no port"),
    ("Job", JOB + "containers.0.env.2.name", "HCABENCH_JOBS", "HCABENCH_JOBS is not in the table"),
    ("Job", JOB + "containers.0.env.4.valueFrom.secretKeyRef.key", "password", "no secret"),
    ("Job", JOB + "containers.0.resources.limits", {"cpu": "4"}, "no RDMA resource"),
    ("Job", JOB + "containers.0.resources.limits.hugepages-2Mi", None, "no huge pages"),
    ("Job", JOB + "containers.0.securityContext.capabilities.add", [], "no IPC_LOCK"),
    ("Job", JOB + "containers.0.securityContext.capability", {}, "'capability' was unexpected"),
    ("Job", JOB + "volumes.0.name", "result", "mounted ['results']"),
    ("Job", JOB + "volumes.0.persistentVolumeClaim.claimName", "other", "no claim other"),
    ("PersistentVolumeClaim", "spec.accessModes", ["ReadWriteOnce"], "no claim hcabench-results"),
    ("PersistentVolumeClaim", "spec.accessMode", [], "'accessMode' was unexpected"),
    ("Service", "spec.clusterIP", "10.0.0.1", "not headless"),
    ("Service", "spec.publishNotReadyAddresses", False, "before it is ready"),
    ("Service", "spec.selector.job-name", "other", "the Service selects"),
    ("Service", "spec.ports.0.port", 19017, "port 19016 is not that of the Service"),
    ("Service", "spec.ports.0.port", "many", "'many' is not of type 'integer'"),
    ("Secret", "metadata.name", "other", "there is no secret"),
    ("Secret", "datum", {}, "'datum' was unexpected"),
    ("Secret", "stringData.secret", "a-secret-that-all-know", "not too short"),
    ("JobSet", "apiVersion", "jobset.x-k8s.io/v1", "JobSet: jobset.x-k8s.io/v1"),
    ("JobSet", "spec.networks", {}, "unknown fields ['networks']"),
    ("JobSet", "spec.network.enableDNSHostnames", False, "no names"),
    ("JobSet", "spec.network.subdomain", "other", "rank 0 is hcabench-rank-0-0.other"),
    ("JobSet", "spec.replicatedJobs.0.replicas", 2, "the same indices"),
    ("JobSet", OF_SET + "completions", 8, "completions 8"),
    ("JobSet", OF_SET + "template.spec.container", [], "'container' was unexpected"),
    ("JobSet", OF_SET + "template.spec.containers.0.image", 7, "7 is not of type 'string'"),
    ("JobSet", OF_SET + "template.spec.volumes.0.persistentVolumeClaim.claimName", "x", "no claim x"),
    ("MPIJob", "spec.slots", 1, "unknown fields ['slots']"),
    ("MPIJob", "spec.slotsPerWorker", 2, "4 ranks, 4 workers"),
    ("MPIJob", "spec.launcherCreationPolicy", "AtStartup", "does not wait for the workers"),
    ("MPIJob", "spec.runPolicy.backoff", 1, "unknown fields ['backoff']"),
    ("MPIJob", WORKER + "replicas", 5, "4 ranks, 5 workers"),
    ("MPIJob", WORKER + "template.metadata.annotations", {}, "nor a secondary one"),
    ("MPIJob", WORKER + "template.spec.containers.0.images", "x", "'images' was unexpected"),
    ("MPIJob", WORKER + "template.spec.containers.0.readinessProbe.tcpSocket", None, "before its sshd"),
    ("MPIJob", WORKER + "template.spec.containers.0.resources.limits", {"cpu": "4"}, "no RDMA resource"),
    ("MPIJob", LAUNCHER + "args", ["fabric", "--rendezvous", "x"], "rank 0 is not at x"),
    ("MPIJob", LAUNCHER + "command", ["mpirun", "-np", "4", "hcabench"], "does not pass HCABENCH_SECRET on"),
)


def damaged(documents, kind, path, value):
    """A copy in which this one thing is another."""
    documents = copy.deepcopy(documents)
    [document] = [document for _, document in documents if document["kind"] == kind]
    *before, last = path.split(".")
    for name in before:
        document = document[int(name) if isinstance(document, list) else name]
    if value is None:
        del document[last]
    else:
        document[int(last) if isinstance(document, list) else last] = value
    return documents


def main(folder, table):
    table = Path(table).read_text(encoding="utf-8")
    files = sorted(Path(folder).glob("*.yaml"))
    documents = [(file.name, document) for file in files
                 for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    try:
        check(documents, table)
        kinds = {document["kind"] for _, document in documents}
        expect(kinds == {"Secret", "Service", "Job", "JobSet", "MPIJob", "PersistentVolumeClaim"}, f"there are only {sorted(kinds)}")
        used = {name for file in files for name in re.findall(r"HCABENCH_[A-Z]+", file.read_text(encoding="utf-8"))}
        for name in re.findall(r'"(HCABENCH_[A-Z]+)"', table):
            expect(name in used, f"no manifest sets {name}")
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    for kind, path, value, words in DAMAGES:
        refused = "not refused"
        try:
            check(damaged(documents, kind, path, value), table)
        except Wrong as wrong:
            refused = str(wrong)
        if words not in refused:
            print(f"{kind}: {path} = {value!r}: '{words}' was expected: {refused}", file=sys.stderr)
            return 1
    print(f"{len(documents)} manifests in {len(files)} files are valid; {len(DAMAGES)} damaged ones were refused")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
