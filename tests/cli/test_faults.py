"""What goes wrong on the command line: a sentence, an exit code, nothing half written."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from princomp import SparsePCA, load, save
from princomp._text import harmless, printable
from princomp.cli.app import cli
from princomp.cli.options import as_toml
from princomp.data.memory import MemoryRows
from princomp.datasets import load_wine
from princomp.report.collect import collect
from princomp.result import Status
from running import command, princomp

FIT = ("fit", "wine.csv", "-k", "2", "--no-report", "-q")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "wine.csv").write_bytes(load_wine().path.read_bytes())
    return tmp_path


def names(folder):
    """Everything in a folder, hidden or not."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def first_line(done):
    """The one sentence on standard error."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert "Traceback" not in done.stderr
    return lines[-1]


# --- bad input ----------------------------------------------------------------------------------------

NUMBERS = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i % 7) for i in range(50))
BAD_FILES = {
    "missing.csv": None,
    "empty.csv": b"",
    "header-only.csv": b"a,b\n",
    "truncated.csv": NUMBERS[:-3] + b',"unclosed',
    "ragged.csv": NUMBERS + b"1,2,3\n",
    "binary.csv": bytes(range(256)) * 40,
    "utf16.csv": NUMBERS.decode().encode("utf-16"),
    "latin1.csv": "größe,b\n1,ü\n".encode("latin-1") * 3,
    "text-only.csv": b"a,b\nx,y\nz,w\n",
    "one-row.csv": b"a,b\n1,2\n",
    "nan.csv": NUMBERS + b"NA,3\n",
    "huge.csv": NUMBERS + b"1e999,3\n",
    "bad.npy": b"\x93NUMPY\x01\x00 not an array",
    "object.npy": None,
    "bad.npz": b"PK\x03\x04 not a zip",
    "bad.parquet": b"PAR1 not parquet PAR1",
    "bad.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n9 9 1\n",
    "what.docx": b"anything",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_input_is_code_3_and_leaves_nothing(name, tmp_path, observe):
    content = BAD_FILES[name]
    if name == "object.npy":
        np.save(tmp_path / name, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    before = names(tmp_path)
    done = princomp("fit", name, "-o", "out", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert name in done.stderr
    assert names(tmp_path) == before
    observe("S6", name, f"exit 3: {first_line(done)[:110]}")


def test_a_folder_is_no_file(tmp_path, observe):
    (tmp_path / "data.csv").mkdir()
    done = princomp("fit", "data.csv", cwd=tmp_path)
    assert done.returncode == 3
    assert names(tmp_path) == ["data.csv"]
    observe("S6", "a directory", f"exit 3: {first_line(done)[:110]}")


def test_bad_model_is_code_3(folder, observe):
    (folder / "bad.princomp").write_bytes(b"PK\x03\x04 no model")
    for command_ in (("inspect", "bad.princomp"), ("transform", "bad.princomp", "wine.csv")):
        done = princomp(*command_, cwd=folder)
        assert done.returncode == 3
        assert "bad.princomp" in done.stderr
    observe("S1", "a model file that is none, inspect and transform", f"exit 3: {first_line(done)[:90]}")


# --- usage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "wanted"),
    [
        ("nonsense = 1", "unknown keys: nonsense"),
        ("components = [", "is not TOML"),
        ("components = { a = 1 }", "must be a text, a number"),
        ("label = ['a']", "must be a text, a number"),
        ("components = true", "neither a count"),
        ("as_json = true", "unknown keys: as_json"),
        ("components = '${HOME}'", "'${HOME}' is neither a count"),
        ("components = 'many'", "nor one of mle, held-out, ard, bic, evidence."),
        ("memory_limit = '__import__(\"os\")'", "is not a size"),
        ("seed = 'one'", "not a valid integer"),
    ],
)
def test_bad_configuration_is_code_2(folder, observe, toml, wanted):
    (folder / "c.toml").write_text(toml)
    done = princomp(*FIT[:2], "--config", "c.toml", cwd=folder)
    assert done.returncode == 2
    assert wanted in done.stderr
    assert not (folder / "out").exists()
    observe("S13", toml, f"exit 2: {first_line(done)[:90]}")


def test_bad_usage_is_code_2(folder):
    for args in (["fit"], ["fit", "wine.csv", "-k", "none"], ["fit", "wine.csv", "--what"], ["nothing"]):
        done = princomp(*args, cwd=folder)
        assert done.returncode == 2
        assert "Error" in done.stderr
    done = princomp(*FIT, "--config", "missing.toml", cwd=folder)
    assert done.returncode == 2
    assert "missing.toml" in first_line(done)


def test_a_folder_is_no_configuration(folder):
    (folder / "c.toml").mkdir()
    done = princomp(*FIT, "--config", "c.toml", cwd=folder)
    assert done.returncode == 2
    assert "c.toml" in first_line(done)


@pytest.mark.parametrize(("gamma", "code"), [("scale", 0), ("median", 0), ("0.5", 0), ("0", 0), ("-1", 2), ("wide", 2)])
def test_the_width_of_a_kernel_is_a_number_or_a_word(folder, gamma, code):
    done = princomp(*FIT, "--method", "kernel", "--drop", "cultivar", "--gamma", gamma, cwd=folder)
    assert done.returncode == code, done.stderr
    if code == 0:
        given = load(folder / "out" / "model.princomp").gamma
        assert given == (gamma if gamma.isalpha() else float(gamma))


def test_transform_replaces_nothing_unasked(folder):
    assert princomp(*FIT, cwd=folder).returncode == 0
    again = ("transform", "out/model.princomp", "wine.csv", "-o", "scores.csv")
    assert princomp(*again, cwd=folder).returncode == 0
    (folder / "scores.csv").write_text("mine")
    done = princomp(*again, cwd=folder)
    assert done.returncode == 5
    assert first_line(done) == "Error: scores.csv is there already. Replace it with --force."
    assert (folder / "scores.csv").read_text() == "mine"
    assert princomp(*again, "--force", cwd=folder).returncode == 0
    assert (folder / "scores.csv").read_text() != "mine"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError("K is too large."), 6, "Error: not enough memory. K is too large."),
        (MemoryError(), 6, "Error: not enough memory."),
        (KeyError("x"), 1, "Error: KeyError('x'). This is a bug: please report it. PRINCOMP_DEBUG=1 shows where it"),
    ],
    ids=["memory", "memory, no more said", "bug"],
)
def test_what_nothing_expects_is_a_sentence_and_a_code_too(folder, monkeypatch, error, code, said):
    def fail(*args, **how):
        raise error

    monkeypatch.setattr("princomp.cli.inspect.reading", fail)
    monkeypatch.delenv("PRINCOMP_DEBUG", raising=False)
    done = princomp("inspect", "x.princomp", cwd=folder)
    assert done.returncode == code
    assert first_line(done).startswith(said)
    monkeypatch.setenv("PRINCOMP_DEBUG", "1")
    if code == 1:
        with pytest.raises(KeyError):
            princomp("inspect", "x.princomp", cwd=folder)
    else:
        assert princomp("inspect", "x.princomp", cwd=folder).returncode == code


def test_a_library_that_is_missing_is_no_fault_of_the_data():
    from princomp.cli.exits import Failure, reading

    for error, said in ((ImportError("No x."), "No x."), (ImportError(), "A library is missing.")):
        with pytest.raises(Failure) as failure, reading("data.csv"):
            raise error
        assert failure.value.code == 2
        assert str(failure.value) == said


def test_warmup_says_that_numba_does_not_work(folder, monkeypatch):
    monkeypatch.setattr("princomp._compiled.loops", lambda name: None)
    done = princomp("warmup", cwd=folder)
    assert done.returncode == 2
    assert first_line(done).startswith("Error: numba does not work here; fits use slower twins.")


def test_missing_extra_names_the_line(folder, observe):
    """P9."""
    script = "import sys; sys.modules['{}'] = None; sys.argv[1:] = {!r}; from princomp.cli import main; main()"
    for module, extra in (("pyarrow", "io"), ("jinja2", "report")):
        code = script.format(module, ["fit", "wine.csv"])
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert f'pip install "princomp[{extra}]"' in done.stderr
        assert not (folder / "out").exists()
    observe("P9", "pyarrow, jinja2 missing", "exit 2, with the pip line")


# --- limits -------------------------------------------------------------------------------------------


def test_not_converged_is_code_4_only_with_strict(folder):
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.standard_normal((3000, 1500)))
    fit = ("fit", "x.npy", "-k", "5", "--max-iter", "2", "--solver", "krylov", "--no-report")
    done = princomp(*fit, "-o", "a", cwd=folder)
    assert done.returncode == 0
    assert "max_iter=2" in done.stderr
    done = princomp(*fit, "-o", "b", "--strict", cwd=folder)
    assert done.returncode == 4
    assert json.loads((folder / "b" / "summary.json").read_text())["status"]["code"] == "iteration limit"


def test_memory_limit_is_code_6(folder, observe):
    np.save(folder / "x.npy", np.ones((3000, 2500)))
    done = princomp("fit", "x.npy", "-k", "400", "--memory-limit", "50M", cwd=folder)
    assert done.returncode == 6, done.stderr
    assert "GiB" in done.stderr
    assert not (folder / "out").exists()
    observe("S6b", "X'X over --memory-limit", f"exit 6: {first_line(done)[:100]}")


# --- output -------------------------------------------------------------------------------------------


def test_nothing_is_replaced_unasked_and_force_replaces_all(folder):
    assert princomp(*FIT, cwd=folder).returncode == 0
    old = (folder / "out" / "model.princomp").read_bytes()
    (folder / "out" / "mine.txt").write_text("keep")
    again = (*FIT[:3], "3", *FIT[4:])
    done = princomp(*again, cwd=folder)
    assert done.returncode == 5
    assert "--force" in done.stderr
    assert (folder / "out" / "model.princomp").read_bytes() == old
    assert princomp(*again, "--force", cwd=folder).returncode == 0
    assert load(folder / "out" / "model.princomp").n_components_ == 3
    assert (folder / "out" / "mine.txt").read_text() == "keep"


def test_no_old_file_stays_beside_new_ones(folder):
    assert princomp(*FIT[:4], "-q", cwd=folder).returncode == 0
    assert (folder / "out" / "report.html").exists()
    done = princomp(*FIT, "--scores", "parquet", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    new = {"config.toml", "loadings.csv", "model.princomp", "scores.parquet", "summary.json"}
    assert {path.name for path in (folder / "out").iterdir()} == new


def test_a_folder_in_the_way_is_replaced_or_all_stays(tmp_path):
    from princomp.cli.exits import Failure
    from princomp.cli.folder import results

    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    with results(tmp_path, ["a", "b"], force=True) as place:
        place.path("a").write_text("new")
        place.path("b").write_text("new")
        place.publish()
    assert (tmp_path / "b").read_text() == "new"

    def fail():
        with results(tmp_path, ["a", "b"], force=True) as place:
            place.path("a").write_text("newer")
            place._exchange(["a", "missing"])  # the second move fails

    with pytest.raises(Failure, match="Nothing was changed"):
        fail()
    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "b").read_text() == "new"
    assert names(tmp_path) == ["a", "b"]


def test_labels_never_take_the_place_of_names_or_scores(folder):
    rows = "".join(f"{-i},s{i},c,{i},{i * i % 7}\n" for i in range(9))
    (folder / "l.csv").write_text(f"id,sample,component_1,x,y\n{rows}")
    done = princomp("fit", "l.csv", "--index", "id", "--no-report", cwd=folder)
    assert done.returncode == 0, done.stderr
    with (folder / "out" / "scores.csv").open(newline="") as file:
        header, _, second, *_ = csv.reader(file)
    assert header == ["sample", "sample (label)", "component_1 (label)", "component_1", "component_2"]
    assert second[:3] == ["-1", "s1", "c"]


def test_transform_never_guesses_columns(folder):
    assert princomp(*FIT, "--index", "wine", "--label", "cultivar", cwd=folder).returncode == 0
    np.save(folder / "x.npy", load_wine().X)
    done = princomp("transform", "out/model.princomp", "x.npy", cwd=folder)
    assert done.returncode == 3
    assert "no column names" in done.stderr
    done = princomp("transform", "out/model.princomp", "wine.csv", "-o", "z.xlsx", cwd=folder)
    assert done.returncode == 2
    assert "Left out 2 text columns" in princomp("transform", "out/model.princomp", "wine.csv", cwd=folder).stderr


def test_numbers_that_json_has_not(folder):
    np.save(folder / "x.npy", 1e200 * load_wine().X)
    done = princomp("fit", "x.npy", "--json", "--no-report", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["explained_variance"][0] is None


def test_full_standard_output_is_code_5(folder):
    assert princomp(*FIT, cwd=folder).returncode == 0
    words = command("transform", "out/model.princomp", "wine.csv")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5, done.stderr
    assert "standard output" in done.stderr


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_full_disk_keeps_the_old_results(folder, observe):
    """P4a: a limit on the size of files stands for the quota; as root also a real file system of 64 kB."""
    assert princomp(*FIT, cwd=folder).returncode == 0
    before = {name: (folder / "out" / name).read_bytes() for name in os.listdir(folder / "out")}
    done = princomp(*FIT, "--force", cwd=folder, preexec_fn=limit_file_size)
    assert done.returncode == 5, done.stderr
    assert "out" in first_line(done)
    assert {name: (folder / "out" / name).read_bytes() for name in os.listdir(folder / "out")} == before
    observe("P4a", "files limited to 4 kB", f"exit 5: {first_line(done)[:100]}")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB, for those who may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        yield None
        return
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_really_full_disk(folder, small_disk, observe):
    """P4a, where mounting is allowed; elsewhere the limit on file sizes above is what there is."""
    if small_disk is None:
        pytest.skip("mounting a file system is not allowed here")
    for output in (small_disk / "new", small_disk):
        done = princomp("fit", "wine.csv", "-o", output, cwd=folder)
        assert done.returncode == 5, done.stderr
        assert "No space left on device" in done.stderr
        assert names(small_disk) == []
    observe("P4a", "64 kB file system", f"exit 5: {first_line(done)[-90:]}")


@pytest.mark.parametrize("output", ["/proc/nothing/out", "wine.csv", "x" * 300, "wine.csv/out"])
def test_impossible_output_is_code_5_before_the_work(folder, observe, output):
    before = names(folder)
    done = princomp(*FIT, "-o", output, cwd=folder)
    assert done.returncode == 5, done.stderr
    assert "Read wine.csv" not in done.stderr
    assert names(folder) == before
    observe("P4b", f"-o {output[:20]}", f"exit 5: {first_line(done)[:100]}")


def test_read_only_folder(folder, observe):
    """P4b: the folder refuses root too, by the file system."""
    (folder / "out").mkdir(mode=0o500)
    runs_as_root = os.geteuid() == 0
    output = "/sys/kernel" if runs_as_root else "out"
    done = princomp(*FIT, "-o", output, cwd=folder)
    assert done.returncode == 5, done.stderr
    observe("P4b", "read-only folder", f"exit 5: {first_line(done)[:100]}")


def test_odd_file_names(folder, observe):
    """P4c."""
    for name in (b"-x.csv", b"caf\xe9.csv", "größe ☃.csv".encode()):
        os.rename(folder / "wine.csv", os.fsencode(folder) + b"/" + name)
        done = princomp("fit", "-k", "2", "-o", "o", "--force", "--", name, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert json.loads((folder / "o" / "summary.json").read_text())["n_samples"] == 178
        os.rename(os.fsencode(folder) + b"/" + name, folder / "wine.csv")
    observe("P4c", "-x.csv (after --), not UTF-8, snowman", "work")


def test_broken_pipe_is_quiet(folder, observe):
    """P6."""
    assert princomp(*FIT, cwd=folder).returncode == 0
    words = command("transform", "out/model.princomp", "wine.csv", "--index", "wine", "--label", "cultivar")
    line = " ".join(map(str, words))
    header, *lines = load_wine().path.read_bytes().splitlines(keepends=True)
    (folder / "wine.csv").write_bytes(header + b"".join(lines * 60))  # more than a pipe holds
    shell = ["bash", "-c", f"{line} | head -1; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(shell, cwd=folder, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "141", done
    assert done.stderr == ""
    observe("P6", "transform ... | head -1", "exit 141, nothing on standard error")


def heed_signals():
    """A job in the background of a shell ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop_leaves_nothing(folder, observe, kind, code):
    """P1 on the command line."""
    np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((20000, 3000)))
    for wait in (0.0, 1.5):
        with subprocess.Popen(
            command("fit", "x.npy", "-k", "300"), cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals
        ) as process:
            assert "Read x.npy" in process.stderr.readline()
            time.sleep(wait)
            process.send_signal(kind)
            begin = time.monotonic()
            said = process.stderr.read()
            assert process.wait(timeout=60) == code, said
        assert names(folder) == ["wine.csv", "x.npy"]
    observe("P1", f"{kind.name} in princomp fit", f"exit {code} after {time.monotonic() - begin:.1f} s, nothing left")


@pytest.fixture
def default_interrupt():
    """Python's own handler of Ctrl-C, whatever the tests were started by."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_interrupt")
def test_signals_during_imports_are_not_lost():
    from princomp.cli.interrupts import held_back

    reached = []

    def import_something():
        with held_back():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            reached.append(True)

    with pytest.raises(KeyboardInterrupt):
        import_something()
    assert reached


def test_kill_at_any_moment_leaves_old_results_whole(folder, observe):
    """P2: outputs are those of one run."""
    begin = time.monotonic()
    assert princomp(*FIT, cwd=folder).returncode == 0
    usual = time.monotonic() - begin
    survived = 0
    for wait in usual * np.linspace(0.3, 1.2, 8):
        process = subprocess.Popen(
            command("fit", "wine.csv", "-k", "3", "--no-report", "--force"),
            cwd=folder,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(wait)
        process.kill()
        process.wait()
        model = load(folder / "out" / "model.princomp")
        summary = json.loads((folder / "out" / "summary.json").read_text())
        assert model.n_components_ == summary["n_components"]
        survived += model.n_components_ == 2
        if model.n_components_ == 3:
            assert princomp(*FIT, "--force", cwd=folder).returncode == 0
    observe("P2", "SIGKILL of princomp fit --force, 8 moments", f"old results whole {survived} times, new ones else")


def test_two_runs_into_one_folder(folder, observe):
    both = [
        subprocess.Popen(
            command("fit", "wine.csv", "-k", k, "--no-report", "-q"),
            cwd=folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for k in (2, 3)
    ]
    codes = [(process.communicate()[1], process.returncode)[1] for process in both]
    assert sorted(codes) == [0, 5]
    winner = (2, 3)[codes.index(0)]
    assert load(folder / "out" / "model.princomp").n_components_ == winner
    assert json.loads((folder / "out" / "summary.json").read_text())["n_components"] == winner
    assert not [name for name in names(folder) if "/." in f"/{name}"]
    observe("P4", "two runs into one folder", "one wins whole, the other exits 5")


def test_language_terminal_and_time_zone_do_not_matter(folder, observe):
    """P7."""
    assert princomp(*FIT, "-o", "a", cwd=folder).returncode == 0
    odd = {"LANG": "C", "LC_ALL": "C", "TZ": "Pacific/Kiritimati", "PYTHONUTF8": "0", "TERM": "dumb", "COLUMNS": "20"}
    (folder / "größe.csv").write_bytes((folder / "wine.csv").read_bytes().replace(b"ash,", "größe ☃,".encode()))
    done = princomp("fit", "größe.csv", "-k", "2", "--no-report", "-o", "b", cwd=folder, env=odd)
    assert done.returncode == 0, done.stderr
    assert (folder / "a" / "scores.csv").read_bytes() == (folder / "b" / "scores.csv").read_bytes()
    observe("P7", "LANG=C, odd TZ, no terminal, names beyond ASCII", "the same scores, no encoding error")


# --- names --------------------------------------------------------------------------------------------


def test_terminal_escapes_in_names_are_shown(folder, observe):
    """S9b."""
    (folder / "odd.csv").write_text("\x1b[31mred,\x07bell,te\x1b]0;title\x07xt\n" + "1,2,a\n3,5,b\n4,4,c\n")
    done = princomp("fit", "odd.csv", "--no-report", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b[31mred" in done.stdout
    assert "\\x1b]0;title" in done.stderr
    observe("S9b", "ANSI escapes in column names", "shown as \\x1b")
    assert printable("a\u202eb\u2028c") == "a\\u202eb\\u2028c"


ESCAPES = "\x1b]0;owned\x07\r\x1b[2J\x9b31m\u202e"


def test_terminal_escapes_in_a_model_file_are_shown(tmp_path, observe):
    """S9b: in sentences, names and parameters, by inspect and transform, and in what Python prints."""
    path, X = tmp_path / "model.princomp", np.random.default_rng(0).normal(size=(20, 3))
    sparse = SparsePCA(2, nonzeros=2, include=[ESCAPES + "x"])
    sparse.fit(MemoryRows(X, names=(ESCAPES + "x", "y", "z")))
    details = {"meaning": ESCAPES, "of": ({ESCAPES: [ESCAPES]},)}
    certificate = replace(sparse.certificate_, unit=ESCAPES, upper=2 * sparse.certificate_.upper, details=details)
    result = replace(sparse.result_, status=Status("stopped", f"Stopped.{ESCAPES}"), certificate=certificate)
    sparse.result_, sparse.certificate_ = result, certificate
    save(sparse, path)

    np.savetxt(tmp_path / "other.csv", X, delimiter=",", header="x,y,z", comments="")
    shown = CliRunner().invoke(cli, ["inspect", str(path)], color=True)  # as to a terminal
    assert shown.exit_code == 0
    refused = princomp("transform", path, tmp_path / "other.csv")
    assert refused.returncode == 3
    again = load(path)
    with pytest.raises(ValueError, match="feature names should match") as error:
        again.transform(pytest.importorskip("pandas").DataFrame(X, columns=list("xyz")))
    texts = {
        "inspect": shown.output,
        "transform": refused.stderr,
        "error": str(error.value),
        "sentences": f"{again.result_.status} {again.certificate_}",
        "details": " ".join([again.certificate_.details["meaning"], *again.certificate_.details["of"][0]]),
        "estimator": repr(again),
        "report": " ".join(collect(again, None, scores=X[:, :2]).certificate.sentences),
    }
    for where, text in texts.items():
        assert not {c for c in ESCAPES if not c.isprintable()} & set(text), where
        assert "x1b" in text or "u001b" in text, where  # it is there
    assert again.feature_names_in_[0] == ESCAPES + "x"  # names are kept: data have them too
    observe("S9b", "ANSI escapes in a model file", "shown as \\x1b by inspect, transform, errors, sentences, report")


FORMULAE = ["=1+1", "+1", "-1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\u00a0=1", "\n=1", "=cmd|' /C calc'!A0"]


def test_text_cells_cannot_be_formulae(folder, observe):
    """S10."""
    assert all(harmless(cell) == "'" + cell for cell in FORMULAE)
    assert all(harmless(cell) == cell for cell in ("a=b", "", "x-1", "1e-3"))
    with (folder / "f.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["=name", "+b", "who", "kind"])
        writer.writerows([i, (i * 7) % 5, cell, "@kind"] for i, cell in enumerate(FORMULAE))
    fit = ("fit", "f.csv", "--index", "who", "--label", "kind", "--no-report", "-q")
    assert princomp(*fit, "-o", "safe", cwd=folder).returncode == 0
    assert princomp(*fit, "-o", "raw", "--raw-csv", cwd=folder).returncode == 0

    def column(path, number):
        with path.open(newline="", encoding="utf-8") as file:
            return [row[number] for row in csv.reader(file)][1:]

    assert column(folder / "safe" / "loadings.csv", 0) == ["'=name", "'+b"]
    assert column(folder / "raw" / "loadings.csv", 0) == ["=name", "+b"]
    printed = ("transform", "raw/model.princomp", "f.csv", "--label", "kind")
    for options, cell in (((), "'@kind"), (("--raw-csv",), '"@kind')):
        assert cell in princomp(*printed, *options, cwd=folder).stdout.splitlines()[1]
    assert column(folder / "safe" / "scores.csv", 1) == ["'@kind"] * len(FORMULAE)
    assert all(cell.startswith("'") for cell in column(folder / "safe" / "scores.csv", 0))
    numbers = column(folder / "safe" / "scores.csv", 2)
    assert any(number.startswith("-") for number in numbers)
    assert numbers == column(folder / "raw" / "scores.csv", 2)
    observe("S10", "cells that begin as formulae", "' before texts, numbers untouched, --raw-csv opts out")


def test_toml_of_any_text_is_read_back():
    import tomllib

    values = {"a": 'quote " backslash \\ \x1b \u202e é', "b": [1, 2.5], "c": True, "d": None}
    assert tomllib.loads(as_toml(values)) == {name: value for name, value in values.items() if value is not None}
