"""A clip whose background is known."""

import numpy as np
import pytest

from princomp.datasets import make_video


@pytest.mark.parametrize("seed", range(4))
def test_a_clip_is_its_background_but_for_the_shapes(seed):
    clip = make_video(random_state=seed)
    assert (clip.background == clip.X)[~clip.moving].all()
    assert np.abs(clip.X - clip.background)[clip.moving].max() > 60
    assert np.linalg.matrix_rank(clip.background, tol=1e-8) == 3
    assert 0 < clip.X.min() <= clip.X.max() < 255
    assert 0.02 < clip.moving.mean() < 0.12
    assert clip.moving.mean(axis=0).max() < 0.6  # no shape stands still
    assert not clip.moving[[0, -1]].any()  # they come in, and leave


def test_noise_and_no_shapes():
    still = make_video(10, n_shapes=0, flicker=0.0, noise=2.0)
    assert not still.moving.any()
    assert np.linalg.matrix_rank(still.background) == 1
    assert 1.9 < (still.X - still.background).std() < 2.1


def test_the_same_seed_gives_the_same_clip():
    one, other = make_video(5, random_state=3), make_video(5, random_state=3)
    assert (one.X == other.X).all()
    assert not (make_video(5, random_state=4).X == one.X).all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n_frames": 1}, "n_frames must be at least 2"),
        ({"shape": (4, 40)}, "height must be at least 8"),
        ({"n_shapes": -1}, "n_shapes must be at least 0"),
        ({"noise": -1.0}, "noise must be finite and not negative"),
    ],
)
def test_clips_that_cannot_be(how, message):
    with pytest.raises(ValueError, match=message):
        make_video(**how)
