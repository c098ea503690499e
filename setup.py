"""Maps the top-level folders into the package `tcir`; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("dialect", "passes", "pipelines", "tools")

package_dir = {"tcir": "tcir"} | {f"tcir.{folder}": folder for folder in FOLDERS}
packages = find_packages(include=["tcir", "tcir.*"])
for folder in FOLDERS:
    packages += [f"tcir.{folder}"] + [f"tcir.{folder}.{name}" for name in find_packages(folder)]

setup(packages=packages, package_dir=package_dir)
