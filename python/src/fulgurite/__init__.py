"""The simulated glass of Fulgurite for Python.

`fulgurite.channel` is the voxel channel of the Rust crate `fulgurite-platter`, bit for bit.
`fulgurite.lab` trains and judges decoders for it. Nothing here reads a platter or an archive.
"""
