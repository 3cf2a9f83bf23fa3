"""Music taken apart: the atoms of a spectrogram are the notes that were played.

python examples/notes.py                 prints the notes
python examples/notes.py picture.png     draws spectrogram, atoms and when each note sounds (needs matplotlib)

Twenty seconds are made up here: eight notes with their overtones, one or two struck every quarter of a second, dying
away, with noise. Frames of 64 ms are rows, their spectra columns. Nothing negative is in a spectrum, nor in a code.
"""

import sys

import numpy as np

from princomp import DictionaryLearning

RATE, FRAME, STEP = 8000, 512, 256  # samples in a second, in a frame, from frame to frame
NAMES = ("C4", "D4", "E4", "F4", "G4", "A4", "B4", "C5")
PITCHES = 440.0 * 2.0 ** (np.array([-9, -7, -5, -4, -2, 0, 2, 3]) / 12)  # Hz


def music(seconds=20, seed=0):
    """Samples, and for each note the samples at which it is struck."""
    rng = np.random.default_rng(seed)
    sound = 0.01 * rng.normal(size=seconds * RATE)
    time = np.arange(RATE) / RATE  # a note lasts a second
    struck = [[] for _ in NAMES]
    for begin in range(0, len(sound) - RATE + 1, RATE // 4):
        for note in rng.choice(len(NAMES), rng.integers(1, 3), replace=False):
            loud = rng.uniform(0.3, 1.0) * np.exp(-4 * time)
            for overtone in range(1, 6):
                phase = rng.uniform(0, 2 * np.pi)
                wave = np.sin(2 * np.pi * PITCHES[note] * overtone * time + phase)
                sound[begin : begin + RATE] += loud * wave / overtone
            struck[note].append(begin)
    return sound, struck


def spectrogram(sound):
    """Magnitudes: a row for each frame, a column for each frequency."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME)[::STEP]
    return np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1)) / FRAME


def pitch(atom):
    """The frequency, of many tried, at whose first five multiples the atom has most."""
    tried = np.linspace(200.0, 600.0, 1601)
    places = np.arange(1, 6) * tried[:, None] * FRAME / RATE
    strengths = np.interp(places.ravel(), np.arange(len(atom)), atom).reshape(places.shape)
    return tried[(strengths / np.arange(1, 6)).sum(axis=1).argmax()]


def main():
    """Listen, learn, name the atoms, draw."""
    sound, struck = music()
    rows = spectrogram(sound)
    rows /= np.linalg.norm(rows, axis=1).mean()
    model = DictionaryLearning(
        len(NAMES), method="batch", alpha=0.05, positive_code=True, positive_dict=True, random_state=0
    ).fit(rows)
    codes = model.transform(rows)
    found = np.array([pitch(atom) for atom in model.components_])
    order = np.argsort(found)
    nearest = np.abs(np.log2(found[:, None] / PITCHES)).argmin(axis=1)
    print(f"{len(rows)} frames of {rows.shape[1]} frequencies, {len(NAMES)} atoms")
    for k in order:
        note = nearest[k]
        true = f"{NAMES[note]}, {PITCHES[note]:.1f} Hz, struck {len(struck[note])} times"
        print(f"  atom {k}: {found[k]:6.1f} Hz is {true}")
    print(f"{len(set(nearest))} of {len(NAMES)} notes have an atom of their own")
    if len(sys.argv) > 1:
        draw(sys.argv[1], rows, model.components_[order], codes[:, order], [NAMES[note] for note in nearest[order]])


def draw(path, rows, atoms, codes, names):
    """Three panels: what was heard, its atoms, and when each sounds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (top, middle, bottom) = pyplot.subplots(3, 1, figsize=(9, 9), layout="constrained")
    extent = (0, len(rows) * STEP / RATE, 0, RATE / 2)
    top.imshow(np.sqrt(rows.T), origin="lower", aspect="auto", extent=extent)
    top.set(title="spectrogram", ylabel="Hz")
    for k, (atom, name) in enumerate(zip(atoms, names, strict=True)):
        middle.plot(np.arange(len(atom)) * RATE / FRAME, atom / atom.max() + k, label=name)
        bottom.fill_between(np.arange(len(codes)) * STEP / RATE, k, k + codes[:, k] / codes.max())
    middle.set(title="atoms", xlabel="Hz", yticks=range(len(names)), yticklabels=names, xlim=(0, 3000))
    bottom.set(title="codes", xlabel="seconds", yticks=range(len(names)), yticklabels=names)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
