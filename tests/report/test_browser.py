"""The report in a real browser: nothing goes wrong, nothing is asked for, and every control does what it says."""

import contextlib
import csv
import shutil

import numpy as np
import pytest

from princomp import PCA, DictionaryLearning, KernelPCA, ProbabilisticPCAMixture, RobustPCA, SparseCCA, report
from princomp.report.collect import shown

pytestmark = pytest.mark.needs("jinja2", "playwright", "chromium")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PLOTS = "svg.main-svg:first-of-type"
TITLE = "() => document.querySelector('#scores .{}title').textContent"


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """visit(path, width=1280, scheme="light"): the page, drawn. In the end, whatever went wrong fails the test."""
    problems = []
    with contextlib.ExitStack() as contexts:

        def visit(path, width=1280, scheme="light"):
            context = contexts.enter_context(
                chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            )
            page = context.new_page()
            page.on("console", lambda message: problems.append(f"console: {message.type} {message.text}"))
            page.on("pageerror", lambda error: problems.append(f"error: {error}"))
            page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
            page.on(
                "request",
                lambda request: (
                    None
                    if request.url.startswith(("file:", "data:", "blob:"))
                    else problems.append(f"request: {request.url}")
                ),
            )
            page.goto(path.as_uri())
            return page

        yield visit
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A report on 60 samples in three groups."""
    rng = np.random.default_rng(0)
    labels = np.array(["red", "green", "blue"])[np.arange(60) % 3]
    X = rng.normal(size=(60, 5)) * [5, 3, 2, 1, 1] + 4 * (labels == "red")[:, None]
    path = tmp_path_factory.mktemp("small") / "report.html"
    names = [f"sample-{i}" for i in range(60)]
    return report.write(PCA(4).fit(X), X, path, labels=labels, label_name="colour", sample_names=names)


def overflow(page):
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def hover(page, chart, selector):
    """Put the pointer on an element of a chart; return the text that appears."""
    page.locator(chart).scroll_into_view_if_needed()
    box = page.locator(f"{chart} {selector}").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator(f"{chart} .hovertext").first.wait_for()
    return page.locator(f"{chart} .hovertext").first.text_content()


def x_positions(page):
    return page.evaluate("document.getElementById('scores').data.map(trace => Array.from(trace.x))")


def test_every_chart_is_drawn(visit, small):
    page = visit(small)
    assert page.locator(f".plot {PLOTS}").count() == 4
    assert page.locator("#variance .bars .point").count() == 4
    assert page.locator("#scores .scatterlayer .point").count() == 60
    assert page.locator("#bars .point").count() == 5
    assert page.locator("#heat-map .heatmaplayer image").count() == 1


def test_selects_change_the_charts(visit, small):
    page = visit(small)
    before = x_positions(page)
    page.select_option("#across", "2")
    assert page.evaluate(TITLE.format("x")).startswith("Component 3")
    assert x_positions(page) != before
    page.select_option("#up", "2")  # taken: the two change places
    assert page.evaluate(TITLE.format("x")).startswith("Component 2")
    assert page.evaluate(TITLE.format("y")).startswith("Component 3")
    weights = "Array.from(document.getElementById('bars').data[0].x)"
    first = page.evaluate(weights)
    page.select_option("#component", "1")
    second = page.evaluate(weights)
    assert second != first
    assert np.all(np.diff(np.abs(second)) <= 0)


def test_hover_names_the_sample(visit, small):
    text = hover(visit(small), "#scores", ".point")
    assert "sample-" in text
    assert "colour: blue" in text  # the first category is drawn first


def test_legend_hides_a_category(visit, small):
    page = visit(small)
    button = page.get_by_role("button", name="green")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert [len(x) for x in x_positions(page)] == [20, 0, 20]
    button.press("Enter")
    assert [len(x) for x in x_positions(page)] == [20, 20, 20]


def test_keyboard_reaches_every_control(visit, small):
    page = visit(small)
    wanted = page.locator("select:enabled, a[data-file], .legend button, summary, .scroll:visible").count()
    reached = set()
    for _ in range(wanted + 10):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.file || document.activeElement.outerHTML"))
    assert {"variance.csv", "loadings.csv"} <= reached
    for part in ('id="across"', 'id="up"', 'id="component"', "aria-pressed", "<summary", 'class="scroll"'):
        assert any(part in element for element in reached), part
    page.locator("#across").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(TITLE.format("x")).startswith("Component 3")


def test_tables_are_downloaded(visit, small, tmp_path):
    page = visit(small)
    for name, header, rows in (("variance.csv", "component", 4), ("loadings.csv", "feature", 5)):
        with page.expect_download() as waiting:
            page.click(f"a[data-file='{name}']")
        assert waiting.value.suggested_filename == name
        waiting.value.save_as(tmp_path / name)
        table = list(csv.reader((tmp_path / name).read_text(encoding="utf-8").splitlines()))
        assert table[0][0] == header
        assert len(table) == rows + 1
        shown_cell = page.locator(f".scroll table:has(th:text-is('{'No.' if rows == 4 else 'Feature'}')) td").first
        assert float(table[1][1]) == pytest.approx(float(shown_cell.text_content()), rel=1e-3)


def test_chart_is_saved_as_a_picture(visit, small, tmp_path):
    page = visit(small)
    page.locator("#scores").hover()
    with page.expect_download() as waiting:
        page.locator("#scores .modebar-btn[data-title^='Download']").click()
    assert waiting.value.suggested_filename == "scores.png"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_no_sideways_scrolling(visit, small, hostile_page, tmp_path, width, scheme):
    long = tmp_path / "hostile.html"
    long.write_text(hostile_page, encoding="utf-8")
    for path in (small, long):
        page = visit(path, width, scheme)
        assert overflow(page) == 0
        page.locator("details:not([open]) summary").click()
        assert overflow(page) == 0


def becomes(page, condition):
    """Wait until a condition holds. (The page forbids eval, by which `wait_for_function` looks a second time.)"""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"After ten seconds it still is not so that {condition}")


def test_colours_follow_the_system(visit, small):
    page = visit(small, scheme="light")
    paper = "document.querySelector('#scores .main-svg').style.background"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    becomes(page, f"{paper} !== {light!r}")


def test_a_window_that_is_turned(visit, small):
    page = visit(small, 375)
    page.set_viewport_size({"width": 900, "height": 400})
    becomes(page, "document.querySelector('#scores .main-svg').getBoundingClientRect().width > 700")
    page.set_viewport_size({"width": 375, "height": 800})
    becomes(page, "document.querySelector('#scores .main-svg').getBoundingClientRect().width < 375")
    assert overflow(page) == 0


def test_print_is_light_and_as_wide_as_paper(visit, small):
    page = visit(small, scheme="dark")
    seen = page.evaluate(
        """() => new Promise((resolve) => {
            addEventListener("beforeprint", () => {
                const paper = document.querySelector("#scores .main-svg");
                resolve([paper.style.background, paper.getBoundingClientRect().width]);
            });
            dispatchEvent(new Event("beforeprint"));
        })"""
    )
    assert seen == ["rgb(255, 255, 255)", 680]
    page.evaluate("() => { dispatchEvent(new Event('afterprint')); }")
    assert page.evaluate("document.querySelector('#scores .main-svg').getBoundingClientRect().width") > 800
    assert page.pdf().startswith(b"%PDF")


def test_hostile_names_in_a_browser(visit, hostile_names, hostile_page, tmp_path, observe):
    """S9a: literal in title, table, legend, chart and hover; no dialog (the fixture would tell)."""
    path = tmp_path / "<b>hostile'\".html"
    path.write_text(hostile_page, encoding="utf-8")
    page = visit(path)
    page.locator("details:not([open]) summary").click()
    cells = page.locator("tbody th.name").all_text_contents()
    assert cells == [shown(name) for name in hostile_names]
    assert page.title().startswith("</script><scri")
    buttons = page.locator(".legend button").all_text_contents()
    assert "<img src=x onerror=alert(1)>" in buttons or "</script><script>alert(1)</script>" in buttons
    ticks = page.evaluate("[...document.querySelectorAll('#heat-map .ytick text')].map(tick => tick.textContent)")
    assert len(ticks) == len(hostile_names)  # equal names are not merged
    for name in ("{{7*7}}", "<b>bold</b>", "%{x}", "&lt;", "__proto__", "(empty)", "</script><scr…ert(1)</script>"):
        assert any(name[:9] == tick[:9] for tick in ticks), name
    for across in ("0", "1", "2"):
        page.select_option("#component", across)
        for bar in range(page.locator("#bars .point").count()):
            box = page.locator("#bars .point").nth(bar).bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert hover(page, "#scores", ".point").startswith(tuple(shown(name, 40) for name in hostile_names))
    assert page.locator(".plot a, .plot img, .plot b").count() == 0
    observe("S9a", f"{len(hostile_names)} hostile names in Chromium", "shown literally; no dialog, error or request")


def write_page(tmp_path, X, k, **options):
    return report.write(PCA(k).fit(X), X, tmp_path / "report.html", **options)


@pytest.mark.filterwarnings("ignore:X ")
@pytest.mark.parametrize("case", ["one feature", "two components", "constant", "few labels", "number labels", "none"])
def test_small_and_degenerate_data_in_a_browser(visit, tmp_path, case):
    X = np.random.default_rng(0).normal(size=(50, 4))
    charts = 4
    if case == "one feature":
        path = write_page(tmp_path, X[:, :1], 1)
    elif case == "two components":
        path = write_page(tmp_path, X, 2)
    elif case == "constant":
        path = write_page(tmp_path, np.ones((5, 3)), 2)
    elif case == "few labels":
        path = write_page(tmp_path, X, 2, labels=[None] * 49 + ["only"])
    elif case == "number labels":
        path = write_page(tmp_path, X, 2, labels=[None, *range(49)])
    else:
        from sklearn.decomposition import PCA as SklearnPCA

        path = report.write(SklearnPCA(0).fit(X), X, tmp_path / "report.html")
        charts = 0
    page = visit(path)
    assert page.locator(f".plot {PLOTS}").count() == charts


def test_many_points_and_features_in_a_browser(visit, tmp_path):
    X = np.random.default_rng(0).normal(size=(50_000, 100)) * np.linspace(3, 1, 100)
    path = write_page(tmp_path, X, 12)
    assert path.stat().st_size < 3e6
    page = visit(path)
    assert page.locator(f".plot {PLOTS}").count() == 4
    counts = "document.getElementById('scores').data[0].customdata"
    first = np.array(page.evaluate(counts), dtype=float)
    assert np.nansum(first) == 50_000
    page.select_option("#across", "1")  # taken: the two change places
    np.testing.assert_array_equal(np.array(page.evaluate(counts), dtype=float), first.T)
    assert "samples" in hover(page, "#scores", ".heatmaplayer image")
    assert overflow(page) == 0


def mixture_of_three(n):
    """Data in three groups far apart, and a mixture of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) * [4, 2, 1, 1] + 30 * rng.normal(size=(3, 4))[np.arange(n) % 3]
    return X, ProbabilisticPCAMixture(3, n_clusters=3, random_state=0).fit(X[:300])


@pytest.mark.parametrize(("width", "columns"), [(1280, 3), (375, 1)])
def test_groups_are_drawn_apart(visit, tmp_path, width, columns):
    X, model = mixture_of_three(300)
    page = visit(report.write(model, X, tmp_path / "report.html"), width)
    assert page.locator(f".plot {PLOTS}").count() == 4
    assert page.locator("#groups .bars .point").count() == 3
    places = [page.locator(f"#scores .subplot.{name}").bounding_box() for name in ("xy", "x2y2", "x3y3")]
    assert len({round(place["x"]) for place in places}) == columns
    drawn = [(trace["xaxis"], len(trace["x"])) for trace in traces_of_scores(page)]
    assert sorted(count for count in drawn if count[1]) == [("x", 100), ("x2", 100), ("x3", 100)]
    titles = page.locator("#scores .annotation-text").all_text_contents()
    assert titles == [f"Group {c}: 100 samples" for c in (1, 2, 3)]
    page.get_by_role("button", name="Group 2").click()
    assert sum(len(trace["x"]) for trace in traces_of_scores(page)) == 200
    page.select_option("#across", "2")
    assert page.locator("#scores .x3title").text_content() == "Component 3"
    page.select_option("#component", label=page.locator("#component option").nth(4).text_content())
    weights = page.evaluate("Array.from(document.getElementById('bars').data[0].x)")
    assert sorted(np.abs(weights)) == pytest.approx(sorted(np.abs(model.components_[1, 1])))
    assert overflow(page) == 0


def traces_of_scores(page):
    read = "trace => ({xaxis: trace.xaxis, x: Array.from(trace.x || [])})"
    return page.evaluate(f"document.getElementById('scores').data.map({read})")


def test_groups_coloured_by_numbers_share_a_scale(visit, tmp_path):
    X, model = mixture_of_three(300)
    page = visit(report.write(model, X, tmp_path / "report.html", labels=X[:, 0]))
    assert page.locator("#scores .colorbar").count() == 1
    scales = page.evaluate("document.getElementById('scores').data.map(({marker}) => [marker.cmin, marker.cmax])")
    assert [scale for scale in scales if scale[0] is not None] == [pytest.approx([X[:, 0].min(), X[:, 0].max()])] * 3


def test_many_points_of_groups_in_a_browser(visit, tmp_path):
    X, model = mixture_of_three(30_000)
    path = report.write(model, X, tmp_path / "report.html")
    assert path.stat().st_size < 3e6
    page = visit(path)
    counts = page.evaluate("document.getElementById('scores').data.map(trace => trace.customdata)")
    assert [np.nansum(np.array(each, dtype=float)) for each in counts] == [10_000] * 3
    assert page.locator("#scores .colorbar").count() == 1


def test_two_sides_in_a_browser(visit, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 6)), rng.normal(size=(80, 4))
    Y[:, 1] += 3 * X[:, 2]
    Y[:, 3] -= 2 * X[:, 5]
    model = SparseCCA(2).fit(X, Y)
    page = visit(report.write(model, X, tmp_path / "report.html", y=Y))
    assert page.locator(f".plot {PLOTS}").count() == 6
    assert [page.evaluate(TITLE.format(each)) for each in "xy"] == ["Pair 1, X", "Pair 1, Y"]
    for side, weights in (("x", model.x_weights_), ("y", model.y_weights_)):
        page.select_option(f"#component-{side}", "1")
        drawn = page.evaluate(f"Array.from(document.getElementById('bars-{side}').data[0].x)")
        assert sorted(np.abs(drawn)) == pytest.approx(sorted(np.abs(weights[:, 1])))
    with page.expect_download() as waiting:
        page.click("a[data-file='loadings-y.csv']")
    assert waiting.value.suggested_filename == "loadings-y.csv"


def test_whiskers_reach_as_far_as_shares_may(visit, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = KernelPCA(3, approximation="rpcholesky", rank=8, random_state=0).fit(X)
    page = visit(report.write(model, X, tmp_path / "report.html"))
    assert page.locator(f".plot {PLOTS}").count() == 2
    assert page.locator("#eigenvalues .errorbar").count() == 3
    bars = page.evaluate("""() => {
        const { y, error_y } = document.getElementById("eigenvalues").data[0];
        return { y: Array.from(y), above: error_y.array, below: error_y.arrayminus };
    }""")
    np.testing.assert_allclose(np.add(bars["y"], bars["above"]), model.ratio_intervals_[:, 1])
    np.testing.assert_allclose(bars["below"], 0.0)
    said = hover(page, "#eigenvalues", ".bars .point")
    low, high = (f"{100 * end:.2f}%" for end in model.ratio_intervals_[0])
    assert said == f"Component 1: {low}, between {low} and {high}"
    page.select_option("#up", label="Novelty")
    drawn = page.evaluate("Array.from(document.getElementById('scores').data[0].y)")
    np.testing.assert_allclose(drawn, model.novelty(X), rtol=1e-6, atol=1e-6)
    assert overflow(page) == 0


def test_report_of_the_demo(visit, tmp_path):
    """What a stranger sees first: the command's own report."""
    from running import princomp

    done = princomp("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = visit(tmp_path / "out" / "demo" / "report.html")
    assert page.locator(f".plot {PLOTS}").count() == 4
    assert page.locator("#scores .scatterlayer .point").count() == 178
    assert "PCA of wine.csv" in page.title()
    assert "2 components hold 55\u00a0% of the variance" in page.locator("main").inner_text()


def test_hostile_csv_through_the_command(visit, tmp_path, hostile_names, observe):
    """S9a, from a file to the page, title included."""
    from running import princomp

    name = "<script>alert(1)<!-- {{7*7}}.csv"
    features = [text for text in hostile_names if text.strip() and "\ud800" not in text][:12]
    with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["who", *[f"{text}{j}" for j, text in enumerate(features)]])
        rng = np.random.default_rng(0)
        for text in features:
            writer.writerow([text, *rng.normal(size=len(features)).round(3)])
    done = princomp("fit", name, "--label", "who", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = visit(tmp_path / "out" / "report.html")
    assert page.locator("h1").inner_text() == f"PCA of {name}"
    observe("S9a", "names from a CSV through princomp fit", "shown literally, no dialog")


@pytest.mark.parametrize("shape", [(3, 4), (2, 2, 3), None])
def test_atoms_are_drawn_small_and_the_chosen_one_large(visit, tmp_path, shape):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(100, 8)) * (rng.random((100, 8)) < 0.3)) @ rng.normal(size=(8, 12))
    model = DictionaryLearning(10, nonzeros=3, max_iter=2, random_state=0).fit(X)
    path = report.write(model, X, tmp_path / "report.html", image_shape=shape)
    page = visit(path)
    seen = page.evaluate(
        """() => {
          const canvas = document.querySelector("#mosaic-atoms canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return [canvas.width, canvas.height, new Set(data.filter((_, i) => i % 4 === 0)).size];
        }"""
    )
    if shape is not None:  # four columns and three rows of images, with a pixel between
        assert seen[:2] == [4 * (shape[1] + 1) - 1, 3 * (shape[0] + 1) - 1]
    assert seen[2] > 5  # shades
    assert page.locator(f"#large-atoms {PLOTS}").count() == 1
    title = "document.querySelector('#large-atoms .gtitle').textContent"
    first = page.evaluate(title)
    box = page.locator("#mosaic-atoms canvas").bounding_box()
    page.locator("#mosaic-atoms canvas").click(position={"x": box["width"] * 0.9, "y": 4})
    assert page.locator("#component-atoms").input_value() == "3"
    assert page.evaluate(title) != first
    page.locator("#component-atoms").select_option("0")
    assert page.evaluate(title) == first
    assert page.locator("#objective .scatterlayer .trace").count() == 1
    assert overflow(visit(path, width=360, scheme="dark")) <= 0


# --- robust PCA: rows that lie out, cells that are not as expected --------------------------------------


@pytest.fixture(scope="module")
def robust(tmp_path_factory):
    """A report on 60 samples, of which some cells are wild, one is missing, and sample 40 has nothing else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 9)) + 0.1 * rng.normal(size=(60, 9))
    X[3, 5] += 9.0
    X[40] += rng.choice([-8.0, 8.0], 9) * rng.uniform(1, 2, 9)
    X[7, 2] = np.nan
    path = tmp_path_factory.mktemp("robust") / "report.html"
    names = [f"sample-{i}" for i in range(60)]
    return report.write(RobustPCA(2, method="cellwise", random_state=0).fit(X), X, path, sample_names=names)


def test_the_outlier_map_draws_all_samples_and_names_the_farthest(visit, robust):
    page = visit(robust)
    assert page.locator("#distances .scatterlayer .point").count() == 60
    assert page.locator("#distances .shapelayer path").count() == 2
    named = page.locator("#distances .annotation").all_text_contents()
    assert 1 <= len(named) <= 5
    assert "sample-40" in named
    assert "within both lines" in page.locator("#distances .legend").text_content()
    assert "beyond a line, no outlier" in page.locator("#distances .legend").text_content()
    assert "sample-" in hover(page, "#distances", ".point")


def test_the_cell_map_has_a_place_for_each_cell(visit, robust):
    page = visit(robust)
    shades, missing, marks = page.evaluate("document.getElementById('cells').data.map(trace => trace.z)")
    assert np.shape(shades) == (60, 9)
    assert shades[3][5] > 0.8
    assert np.count_nonzero(np.array(shades)[:3]) <= 2
    assert missing[7][2] == 1
    assert sum(cell is not None for row in missing for cell in row) == 1
    assert [i for i, (mark,) in enumerate(marks) if mark] == [40]
    texts = page.evaluate("document.getElementById('cells').data[0].text")
    assert texts[3][5].startswith("<b>sample-3</b><br>x5: +")
    assert texts[7][2] == "<b>sample-7</b><br>x2: missing"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (400, "light")])
def test_maps_of_robust_pca_fit_on_any_screen(visit, robust, width, scheme):
    page = visit(robust, width=width, scheme=scheme)
    assert page.locator(f"#cells {PLOTS}").count() == 1
    assert overflow(page) <= 0
