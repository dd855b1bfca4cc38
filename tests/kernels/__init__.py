"""Runs refleak on kernels of the distribution, each in a virtual machine on this machine's root file system."""
