"""fleetctl: a declarative, GitOps-style reconciler for GPU fleets."""

__version__ = "0.1.0"
