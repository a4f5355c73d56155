"""Only what pyproject.toml cannot say: `schemas/` ships inside the package, as `fleetctl/_schemas`."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["fleetctl", "fleetctl.*"]), "fleetctl._schemas"],
    package_dir={"fleetctl._schemas": "schemas"},
    package_data={"fleetctl": ["py.typed"], "fleetctl._schemas": ["*.json", "*.cddl"]},
)
