"""Specs of functions: files, presets, discovery."""
