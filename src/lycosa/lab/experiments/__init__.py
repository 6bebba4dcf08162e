"""The experiments that come with Lycosa: one module each, named here and nowhere else.

Name → "module:attribute", as in a package's entry points, so that looking one up imports only that one.
Read by `lycosa.lab.registry`.
"""

BUILT_IN: dict[str, str] = {
    "assignment": "lycosa.lab.experiments.assignment:EXPERIMENT",
    "change": "lycosa.lab.experiments.change:EXPERIMENT",
    "freshness": "lycosa.lab.experiments.freshness:EXPERIMENT",
    "migrating": "lycosa.lab.experiments.migrating:EXPERIMENT",
    "policies": "lycosa.lab.experiments.policies:EXPERIMENT",
    "savings": "lycosa.lab.experiments.savings:EXPERIMENT",
    "simweb": "lycosa.lab.experiments.simweb:EXPERIMENT",
    "tarantula": "lycosa.lab.experiments.tarantula:EXPERIMENT",
    "tol": "lycosa.lab.experiments.tol:EXPERIMENT",
    "tvi": "lycosa.lab.experiments.tvi:EXPERIMENT",
}
