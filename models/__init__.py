"""Learned parts and what they learn from: arrays and tensors in, tensors out; no DICOM, no
network, one algorithm a file.
"""
