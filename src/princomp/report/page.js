"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const narrow = matchMedia("(max-width: 600px)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const fingers = matchMedia("(pointer: coarse)").matches;

// Okabe and Ito's colours, told apart by the colour-blind too; a second marker makes twelve kinds of six colours.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"];
const GREY = "#8c96a3";

// Viridis without the end that the background would swallow.
const SCALES = {
  light: ["#440154", "#3b528b", "#21918c", "#5ec962", "#b5de2b"],
  dark: ["#6d7fd1", "#2c9fa8", "#2fb47c", "#90d743", "#fde725"],
};

const KINDS = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };

function unpack({ dtype, bdata }) {
  return new KINDS[dtype](Uint8Array.from(atob(bdata), (letter) => letter.charCodeAt(0)).buffer);
}

// plotly reads a little HTML in texts; names are not HTML.
function literal(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function short(text, longest = narrow.matches ? 14 : 24) {
  const letters = Array.from(text);
  if (letters.length <= longest) return literal(text);
  const tail = Math.floor(longest / 3);
  return literal(letters.slice(0, longest - tail - 1).join("") + "…" + letters.slice(-tail).join(""));
}

const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const isDark = () => dark.matches && !("printing" in root.dataset);
const scale = () => SCALES[isDark() ? "dark" : "light"].map((shade, i) => [i / 4, shade]);
const chosen = (id) => Number(document.getElementById(id).value);

// --- what all charts share ---------------------------------------------------------------------------

function axis(text, more = {}) {
  return {
    title: { text, standoff: 10 },
    gridcolor: colour("--line"),
    linecolor: colour("--line"),
    zerolinecolor: colour("--soft"),
    automargin: true,
    ...more,
  };
}

function draw(id, traces, layout, buttons = []) {
  const card = colour("--card");
  const box = document.getElementById(id);
  const common = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--ink") },
    paper_bgcolor: card,
    plot_bgcolor: card,
    margin: { l: 20, r: 12, t: 28, b: 20 },
    hoverlabel: { bgcolor: colour("--ink"), bordercolor: colour("--ink"), font: { color: card }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--accent") },
    dragmode: false,
    width: "printing" in root.dataset ? 680 : undefined,
  };
  box.style.height = `${layout.height}px`;
  Plotly.react(box, traces, { ...common, ...layout }, {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [[...buttons, "toImage"]],
    toImageButtonOptions: { filename: id, scale: 2 },
  });
}

// Buttons that show what a category looks like, and hide or show it.
function legend(labels, look, hidden, redraw) {
  const shapes = {
    circle: '<circle cx="6" cy="6" r="4.5" fill="currentColor"/>',
    "diamond-open": '<path d="M6 1 11 6 6 11 1 6Z"/>',
    "x-thin-open": '<path d="M2 2 10 10M10 2 2 10"/>',
  };
  const box = document.getElementById("legend");
  box.hidden = false;
  labels.categories.forEach((category, c) => {
    const { color, symbol } = look(c);
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = `<svg viewBox="0 0 12 12" aria-hidden="true">${shapes[symbol]}</svg>`; // no text of others here
    button.firstChild.style.color = color;
    button.append(category);
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      if (!hidden.delete(c)) hidden.add(c);
      button.setAttribute("aria-pressed", String(!hidden.has(c)));
      redraw();
    });
    box.append(button);
  });
}

// --- the charts: each is drawn anew when something that it shows has changed --------------------------------

const charts = {};

if (data.variance) {
  const ratio = unpack(data.variance.ratio);
  const cumulative = unpack(data.variance.cumulative);
  const components = Array.from(ratio, (_, j) => j + 1);
  const all = cumulative[cumulative.length - 1];
  charts.scree = () => {
    draw("scree", [
      {
        type: "bar", name: "each", x: components, y: ratio, marker: { color: colour("--accent") },
        hovertemplate: "Component %{x}: %{y:.2%}<extra></extra>",
      },
      {
        type: "scatter", name: "cumulative", x: components, y: cumulative, mode: "lines+markers",
        line: { color: COLOURS[1], width: 2 }, marker: { size: ratio.length > 40 ? 3 : 7 },
        hovertemplate: "First %{x}: %{y:.2%}<extra></extra>",
      },
    ], {
      height: 380,
      xaxis: axis("Component", {
        dtick: ratio.length <= 20 ? 1 : undefined, showgrid: false, range: [0.4, ratio.length + 0.6],
      }),
      yaxis: axis("Share of variance", { tickformat: ".0%", range: [0, all > 0.6 ? 1.06 : 1.2 * all || 1] }),
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      bargap: 0.25,
    });
  };
}

if (data.scores) {
  const { axes, names, labels } = data.scores;
  const zoom = ["zoom2d", "pan2d", "resetScale2d"];
  const layout = (across, up) => ({
    height: narrow.matches ? 460 : 560,
    xaxis: axis(axes[across], { zeroline: true }),
    yaxis: axis(axes[up], { zeroline: true }),
    dragmode: fingers ? false : "zoom", // a finger on the chart scrolls the page
    hovermode: "closest",
    showlegend: false, // categories have one of their own, which the keyboard reaches
  });

  if (data.scores.columns) {
    const columns = data.scores.columns.map(unpack);
    const n = columns[0].length;
    const values = labels && unpack(labels.values);
    const size = n <= 300 ? 8 : n <= 3000 ? 6 : 4;
    const opacity = n <= 300 ? 0.85 : n <= 3000 ? 0.75 : 0.5;
    const all = Array.from({ length: n }, (_, i) => i);
    const hidden = new Set(); // categories
    const look = (c) => (c >= labels.coloured
      ? { color: GREY, symbol: "x-thin-open" }
      : { color: COLOURS[c % 6], symbol: c < 6 ? "circle" : "diamond-open", line: { width: c < 6 ? 0 : 1.8 } });

    const hover = (i, label) => literal(names ? names[i] : `Sample ${i + 1}`)
      + (label === undefined ? "" : `<br>${literal(labels.name)}: ${label}`);

    // A trace of some of the points.
    const points = (across, up, rows, label, marker) => ({
      type: "scatter", mode: "markers",
      x: rows.map((i) => columns[across][i]),
      y: rows.map((i) => columns[up][i]),
      text: rows.map((i) => hover(i, label(i))),
      marker: { size, opacity, ...marker },
      hovertemplate: "<b>%{text}</b><br>%{x:.4g}, %{y:.4g}<extra></extra>",
    });

    const traces = (across, up) => {
      if (!labels) return [points(across, up, all, () => undefined, { color: colour("--accent") })];
      if (labels.categories) {
        return labels.categories.map((category, c) => points(
          across, up, hidden.has(c) ? [] : all.filter((i) => values[i] === c), () => literal(category), look(c),
        ));
      }
      const known = all.filter((i) => !Number.isNaN(values[i]));
      const missing = all.filter((i) => Number.isNaN(values[i]));
      const bar = narrow.matches ? { orientation: "h", y: -0.3, thickness: 12 } : { thickness: 14 };
      return [
        points(across, up, missing, () => "missing", { color: GREY, symbol: "x-thin-open" }),
        points(across, up, known, (i) => String(values[i]), {
          color: known.map((i) => values[i]), colorscale: scale(), showscale: true,
          colorbar: { title: { text: short(labels.name) }, outlinewidth: 0, ...bar },
        }),
      ];
    };

    charts.scores = () => {
      const [across, up] = [chosen("across"), chosen("up")];
      draw("scores", traces(across, up), layout(across, up), zoom);
    };
    if (labels && labels.categories) legend(labels, look, hidden, () => charts.scores());
  } else {
    const { limits, cells, counts } = data.scores;

    // Counts of a pair of axes, row by row from below; zero cells stay empty.
    const table = (across, up) => {
      const swapped = across > up;
      const flat = unpack(counts[swapped ? `${up} ${across}` : `${across} ${up}`]);
      return Array.from({ length: cells }, (_, row) => Array.from({ length: cells }, (_, column) => {
        const count = swapped ? flat[column * cells + row] : flat[row * cells + column];
        return count || null;
      }));
    };
    const centres = ([low, high]) => Array.from({ length: cells }, (_, i) => low + ((i + 0.5) / cells) * (high - low));

    charts.scores = () => {
      const [across, up] = [chosen("across"), chosen("up")];
      const found = table(across, up);
      const powers = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
      draw("scores", [{
        type: "heatmap", x: centres(limits[across]), y: centres(limits[up]),
        z: found.map((row) => row.map((count) => count && Math.log10(count))),
        customdata: found, colorscale: scale(), hoverongaps: false,
        colorbar: {
          title: { text: "samples" }, outlinewidth: 0,
          tickvals: powers, ticktext: powers.map((power) => `${10 ** power}`),
          ...(narrow.matches ? { orientation: "h", y: -0.3, thickness: 12 } : { thickness: 14 }),
        },
        hovertemplate: "%{customdata} samples<br>near %{x:.4g}, %{y:.4g}<extra></extra>",
      }], layout(across, up), zoom);
    };
  }

  // The same component both ways shows nothing: choosing one that is taken swaps the two.
  const before = { across: chosen("across"), up: chosen("up") };
  for (const [id, other] of [["across", "up"], ["up", "across"]]) {
    document.getElementById(id).addEventListener("change", () => {
      if (chosen(id) === chosen(other)) document.getElementById(other).value = before[id];
      Object.assign(before, { across: chosen("across"), up: chosen("up") });
      charts.scores();
    });
  }
}

if (data.loadings) {
  const { features, heatMap } = data.loadings;
  const weights = data.loadings.weights.map(unpack); // by component

  // Features stand at numbers, not at their names: names may be equal.
  const names = (rows) => axis("", {
    tickvals: rows.map((_, i) => i), ticktext: rows.map((j) => short(features[j])),
    range: [rows.length - 0.5, -0.5], showgrid: false, zeroline: false, ticks: "",
  });

  charts.bars = () => {
    const chosenWeights = weights[chosen("component")];
    const rows = features.map((_, j) => j)
      .sort((a, b) => Math.abs(chosenWeights[b]) - Math.abs(chosenWeights[a]))
      .slice(0, data.loadings.bars);
    const values = rows.map((j) => chosenWeights[j]);
    draw("bars", [{
      type: "bar", orientation: "h", x: values, y: rows.map((_, i) => i),
      text: rows.map((j) => literal(features[j])), textposition: "none",
      marker: { color: values.map((value) => colour(value < 0 ? "--against" : "--accent")) },
      hovertemplate: "<b>%{text}</b><br>%{x:.4f}<extra></extra>",
    }], { height: 90 + 25 * Math.max(rows.length, 3), xaxis: axis("Weight"), yaxis: names(rows), bargap: 0.3 });
  };
  document.getElementById("component").addEventListener("change", charts.bars);

  charts["heat-map"] = () => {
    const largest = Math.max(...weights.flatMap((column) => heatMap.map((j) => Math.abs(column[j])))) || 1;
    draw("heat-map", [{
      type: "heatmap", x: weights.map((_, c) => c + 1), y: heatMap.map((_, i) => i),
      z: heatMap.map((j) => weights.map((column) => column[j])),
      text: heatMap.map((j) => weights.map(() => literal(features[j]))),
      colorscale: [[0, colour("--against")], [0.5, colour("--middle")], [1, colour("--accent")]],
      zmin: -largest, zmax: largest, xgap: 1, ygap: 1,
      colorbar: { orientation: "h", y: 1, yanchor: "bottom", thickness: 10, len: 1, outlinewidth: 0, nticks: 5 },
      hovertemplate: "<b>%{text}</b><br>component %{x}: %{z:.4f}<extra></extra>",
    }], {
      height: 150 + (heatMap.length > 30 ? 15 : 18) * Math.max(heatMap.length, 6),
      xaxis: axis("Component", { dtick: 1, showgrid: false, zeroline: false }),
      yaxis: names(heatMap),
    });
  };
}

// --- the page ----------------------------------------------------------------------------------------

// From nothing, since a colour bar that turns from upright to lying would leave traces.
function drawAll() {
  for (const [id, chart] of Object.entries(charts)) {
    Plotly.purge(id);
    chart();
  }
}

for (const link of document.querySelectorAll("a[data-file]")) {
  const name = link.dataset.file;
  link.href = URL.createObjectURL(new Blob([data.files[name]], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.hidden = false;
}

dark.addEventListener("change", drawAll);
narrow.addEventListener("change", drawAll);
addEventListener("beforeprint", () => {
  root.dataset.printing = "";
  drawAll();
});
addEventListener("afterprint", () => {
  delete root.dataset.printing;
  drawAll();
});
drawAll();
