"""The pictures of docs/robust_pca.md, drawn by make_pictures.py."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def video(plt):
    """Frames of a clip, their background and what moves: what examples/video_background.py draws."""
    sys.path.insert(0, str(ROOT / "examples"))
    from video_background import draw, split

    from princomp.datasets import make_video

    clip = make_video(random_state=0)
    return draw(plt, clip, split(clip))
