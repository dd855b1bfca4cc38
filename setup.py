"""The packages: all of `tracer`, and the BPF sources of the checkout's `bpf/` as `tracer/bpf`."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["tracer", "tracer.*"]), "tracer.bpf"], package_dir={"tracer.bpf": "bpf"})
