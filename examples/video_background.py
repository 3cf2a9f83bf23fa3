"""Background and foreground of a clip, by principal component pursuit, and how close they come to the truth.

python examples/video_background.py               prints errors, beside those of PCA and of the median of each pixel
python examples/video_background.py strip.png     draws some frames (needs matplotlib)
python examples/video_background.py clip.gif      writes the clip, its background and its foreground as an animation
                                                  (needs Pillow)

Each row is a frame. The background is a still scene in which two lights flicker, so that all backgrounds together have
rank 3; shapes that cross the frame are wrong in a few pixels of each row. PCA smears shapes over all frames, and the
median of each pixel knows of no light.
"""

import sys

import numpy as np

from princomp import PCA, RobustPCA
from princomp.datasets import make_video

RANK = 3
SEEN = 15.0  # levels of grey by which a pixel differs from its background, if there is a shape


def split(clip):
    """Backgrounds by three ways, by name."""
    pca = PCA(RANK).fit(clip.X)
    pursuit = RobustPCA(method="pcp", random_state=0).fit(clip.X)
    return {
        "median": np.broadcast_to(np.median(clip.X, axis=0), clip.X.shape),
        "PCA": pca.inverse_transform(pca.transform(clip.X)),
        "pcp": pursuit.low_rank_,
    }


def quality(clip, background):
    """Mean error of the background in levels of grey, and F1 score of what moves."""
    seen = np.abs(clip.X - background) > SEEN
    hits = (seen & clip.moving).sum()
    return np.abs(background - clip.background).mean(), 2 * hits / (seen.sum() + clip.moving.sum())


def main():
    """Split, compare, draw."""
    clip = make_video(random_state=0)
    backgrounds = split(clip)
    print(
        f"{len(clip.X)} frames of {clip.shape[0]} x {clip.shape[1]} pixels, {clip.moving.mean():.1%} of these a shape\n"
    )
    print("background by   mean error, levels of grey   F1 of what moves")
    for name, background in backgrounds.items():
        error, found = quality(clip, background)
        print(f"{name:14}  {error:26.3f}   {found:16.3f}")
    if len(sys.argv) > 1:
        if sys.argv[1].endswith(".gif"):
            animate(clip, backgrounds["pcp"], sys.argv[1])
        else:
            import matplotlib

            matplotlib.use("Agg")
            from matplotlib import pyplot

            draw(pyplot, clip, backgrounds).savefig(sys.argv[1], dpi=120)
        print(f"wrote {sys.argv[1]}")


def draw(pyplot, clip, backgrounds):
    """Draw some frames, their backgrounds by each way, and what moves: the frame less its background, about grey."""
    from princomp import plots

    chosen = np.linspace(0.1, 0.9, 5) * len(clip.X)
    chosen = chosen.astype(int)
    rows = {"frame": clip.X[chosen]} | {f"{name}:\nbackground": each[chosen] for name, each in backgrounds.items()}
    rows["pcp:\nforeground"] = foreground(clip.X, backgrounds["pcp"])[chosen]
    rows["true\nforeground"] = foreground(clip.X, clip.background)[chosen]
    figure, axes = pyplot.subplots(figsize=(8.6, 7.4), layout="constrained")
    plots.image_mosaic(rows, shape=clip.shape, limits=(0.0, 255.0), axes=axes)
    return figure


def foreground(X, background):
    """What the background leaves, halved, about the middle grey: black and white are the two ends."""
    return 127.5 + (X - background) / 2


def animate(clip, background, path):
    """Write frame, background and foreground side by side, frame after frame."""
    frames = [each.resize((3 * each.width, 3 * each.height), 0) for each in side_by_side(clip, background)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=80, loop=0, optimize=True)


def side_by_side(clip, background, chosen=slice(None)):
    """Frame, background and foreground as one image, of each frame that is chosen."""
    from PIL import Image

    parts = (clip.X[chosen], background[chosen], foreground(clip.X, background)[chosen])
    images = [each.reshape(-1, *clip.shape).clip(0, 255).round().astype(np.uint8) for each in parts]
    gap = np.full((*images[0].shape[:2], 2), 255, np.uint8)
    whole = np.concatenate([images[0], gap, images[1], gap, images[2]], axis=2)
    return [Image.fromarray(each) for each in whole]


if __name__ == "__main__":
    main()
