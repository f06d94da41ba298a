"""The network: a U of convolutions from registered images to logits of every voxel.

    images [n, states, 3H, 3W]
      stem 7x7 stride 3 ---> [c, H, W] --blocks---------------------------(+)--blocks--> head 1x1
                               |                                            ^    logits [n, K, H, W]
                            down 2x2 ---> [2c, H/2, W/2] --blocks--(+)--blocks--up
                                            |                       ^
                                         down 2x2 ---> [4c, ..] --blocks--up

Registration puts each voxel in the middle of a square of the stem's stride (`data.registered`), so
the stem lands on the grid of voxels and all the rest runs at one sample a voxel and below. Only
Conv, Relu, Add and DepthToSpace remain once batch norms are folded in, so that every engine runs
it. H and W are multiples of 2^depth.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from fulgurite.lab.config import NetworkConfig


class Block(nn.Module):
    """A residual block: two dense 3x3, the last one added to what came in."""

    def __init__(self, width: int) -> None:
        """Make one of `width` channels."""
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Run it."""
        added: Tensor = x + self.inner(x)
        return added


class VoxelUNet(nn.Module):
    """Images to logits."""

    def __init__(self, config: NetworkConfig, states: int, symbols: int, pitch: int) -> None:
        """Make one for images of `states` states, `pitch` pixels a voxel."""
        super().__init__()
        if config.stem < pitch or (config.stem - pitch) % 2:
            raise ValueError(f"stem is {config.stem}; its middle must be that of {pitch} pixels")
        widths = [config.width << level for level in range(config.depth + 1)]

        def blocks(width: int) -> nn.Sequential:
            return nn.Sequential(*(Block(width) for _ in range(config.blocks)))

        self.stem = nn.Sequential(
            nn.Conv2d(
                states,
                config.width,
                config.stem,
                stride=pitch,
                padding=(config.stem - pitch) // 2,
                bias=False,
            ),
            nn.BatchNorm2d(config.width),
            nn.ReLU(),
        )
        self.encode = nn.ModuleList(blocks(width) for width in widths)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 2, stride=2) for a, b in pairwise(widths))
        # A 1x1 convolution and a shuffle are a transposed 2x2 one, of parts that engines have.
        self.up = nn.ModuleList(
            nn.Sequential(nn.Conv2d(b, 4 * a, 1), nn.PixelShuffle(2)) for a, b in pairwise(widths)
        )
        self.decode = nn.ModuleList(blocks(width) for width in widths[:-1])
        self.head = nn.Conv2d(config.width, symbols, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of all voxels."""
        x = self.stem(images)
        kept = []
        for encode, down in zip(self.encode[:-1], self.down, strict=True):
            x = encode(x)
            kept.append(x)
            x = down(x)
        x = self.encode[-1](x)
        for decode, up, skip in zip(
            reversed(self.decode), reversed(self.up), reversed(kept), strict=True
        ):
            x = decode(up(x) + skip)
        logits: Tensor = self.head(x)
        return logits


def parameter_count(network: nn.Module) -> int:
    """Count numbers that are trained."""
    return sum(parameter.numel() for parameter in network.parameters())


def macs_per_voxel(network: VoxelUNet, states: int, pitch: int) -> float:
    """Count multiplications of its convolutions, for a voxel."""
    side, total = 32, 0

    def count(module: nn.Module, _: object, out: Tensor) -> None:
        nonlocal total
        assert isinstance(module, nn.Conv2d)
        total += module.weight.numel() * out.shape[2] * out.shape[3]

    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    hooks = [m.register_forward_hook(count) for m in convolutions]
    was_training = network.training
    network.eval()
    with torch.no_grad():
        network(torch.zeros(1, states, side * pitch, side * pitch))
    network.train(was_training)
    for hook in hooks:
        hook.remove()
    return total / side**2
