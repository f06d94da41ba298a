"""The lab: trains decoders of voxels, and judges all of them on the same frozen sectors.

    config --> data (channel) --> train (network) --> checkpoint --> export (ONNX)
                     |                                    |
                     +--> linear (classical) --> evaluate (metrics) --> report --> figures

Run it as `python -m fulgurite.lab`. Only `network`, `train` and `export` need torch. Decoding for
real is the Rust crate `decode`, which runs the exported network.
"""
