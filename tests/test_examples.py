"""Every example runs, in a process of its own, and shows what it says it shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def numbers(pattern, text):
    """What the groups of a pattern match, wherever it does."""
    return [[float(group) for group in found.groups()] for found in re.finditer(pattern, text, re.MULTILINE)]


def fewer_coefficients(text):
    """Learned atoms take fewer coefficients than cosines and wavelets: at each ratio, on the face and on the slice."""
    saved = numbers(r": (-?\d+)%, (-?\d+)%, (-?\d+)% fewer", text)
    assert len(saved) == 2
    assert min(map(min, saved)) > 0


def learned_atoms_need_fewer_measurements(text):
    for count in (24, 32):
        learned, cosines, haar = (value for (value,) in numbers(rf"^{count} numbers .* +(\d+\.\d+) dB$", text))
        assert learned > cosines + 0.5 > haar + 0.5


def patches_beat_pixels(text):
    ((pixels,), (patches,)) = numbers(r"(\d+\.\d)% of 1497 other digits", text)
    assert patches > pixels


def codes_beat_pixels(text):
    ((means,), (pixels,)) = numbers(r"pixels +adjusted Rand index (\d\.\d+)", text)
    (codes,) = numbers(r"codes +adjusted Rand index (\d\.\d+), (\d\.\d+), (\d\.\d+)", text)
    assert sorted(codes)[1] > max(means, pixels)


def every_note_has_an_atom(text):
    assert "8 of 8 notes have an atom of their own" in text


def the_stream_teaches(text):
    looks = numbers(r"(\d+)% of the atoms, error (\d\.\d+)", text)
    assert len(looks) == 6
    assert looks[-1][0] >= 90
    assert looks[-1][1] < looks[0][1] / 2


def sweeps_take_networks_apart(text):
    """R1DL with sweeps finds all networks; pairs one by one, and PCA, mix them."""
    alike = {
        name: numbers(rf"^{name} +" + r" +".join([r"(\d\.\d+)"] * 6) + "$", text)[0]
        for name in ("R1DL", "R1DL, refined", "PCA")
    }
    assert min(alike["R1DL, refined"]) > 0.95
    assert min(alike["R1DL"]) < 0.9
    assert max(alike["PCA"]) < 0.8
    for name in ("R1DL, refined", "sparse PCA", "dictionary"):
        ((half, chosen, twice),) = numbers(rf"^{name} +(\d\.\d+) +(\d\.\d+) +(\d\.\d+)$", text)
        assert chosen >= max(half, twice) > 0.9


def background_by_pursuit(text):
    """Errors in levels of grey, and F1 scores of what moves."""
    error, found = {}, {}
    for name in ("median", "PCA", "pcp"):
        ((error[name], found[name]),) = numbers(rf"^{name} +(\d+\.\d+) +(\d\.\d+)$", text)
    assert error["pcp"] < 0.01 < 1 < min(error["median"], error["PCA"])
    assert found["pcp"] > 0.95 > 0.7 > max(found["median"], found["PCA"])


CLAIMS = {
    "video_background.py": background_by_pursuit,
    "brain_networks.py": sweeps_take_networks_apart,
    "learned_against_fixed.py": fewer_coefficients,
    "compressed_sensing.py": learned_atoms_need_fewer_measurements,
    "bag_of_patches.py": patches_beat_pixels,
    "clusters_of_codes.py": codes_beat_pixels,
    "notes.py": every_note_has_an_atom,
    "dictionary_stream.py": the_stream_teaches,
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    CLAIMS.get(path.name, lambda text: None)(done.stdout)
