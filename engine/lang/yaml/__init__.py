"""The one reader of YAML: text in, plain values out, read the way Kubernetes' own tools read it.

kubectl and Kyverno turn YAML into JSON with `sigs.k8s.io/yaml` before anything looks at it, so what counts is that library's
reading (mostly YAML 1.1: `yes` is true, `0644` is 420, a date stays text, keys become text). Files, policies, `parse_yaml` in
expressions and signed manifests all need that same reading, which is why it lives in the engine, reads no files and is the only
place that knows PyYAML.

`load_all` gives documents with line numbers, `load` the first value. Everything that cannot be read is a `DocumentError` with
file and line; bounds on size, depth and alias expansion are in `Limits`.
"""

from engine.lang.work import LIMITS, Limits

from .document import Document
from .read import load, load_all

__all__ = ["LIMITS", "Document", "Limits", "load", "load_all"]
