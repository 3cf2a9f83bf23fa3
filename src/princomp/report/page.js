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

const show = {};

show.chart = (name, { row, axis: height, share, bars, line, between }) => {
  const each = unpack(bars);
  const along = line && unpack(line);
  const [low, high] = between.length ? between.map(unpack) : [each, each]; // where the numbers lie for sure
  const numbers = Array.from(each, (_, j) => j + 1);
  const largest = Math.max(...(along || each), ...high, 0);
  const top = largest > 1 ? 1.06 * largest : largest > 0.6 ? 1.06 : 1.2 * largest || 1; // most shares and correlations: 1
  const what = row[0].toUpperCase() + row.slice(1);
  const digits = share ? ".2%" : ".4g";
  charts[name] = () => {
    const traces = [{
      type: "bar", name: "each", x: numbers, y: each, marker: { color: colour("--accent") }, showlegend: Boolean(line),
      hovertemplate: `${what} %{x}: %{y:${digits}}<extra></extra>`,
    }];
    if (between.length) {
      Object.assign(traces[0], {
        customdata: Array.from(each, (_, j) => [low[j], high[j]]),
        hovertemplate: `${what} %{x}: %{y:${digits}}, ` +
          `between %{customdata[0]:${digits}} and %{customdata[1]:${digits}}<extra></extra>`,
        error_y: {
          type: "data", symmetric: false, color: colour("--ink"), thickness: 1.5,
          array: Array.from(each, (number, j) => high[j] - number),
          arrayminus: Array.from(each, (number, j) => number - low[j]),
        },
      });
    }
    if (line) {
      traces.push({
        type: "scatter", name: "cumulative", x: numbers, y: along, mode: "lines+markers",
        line: { color: COLOURS[1], width: 2 }, marker: { size: each.length > 40 ? 3 : 7 },
        hovertemplate: `First %{x}: %{y:${digits}}<extra></extra>`,
      });
    }
    draw(name, traces, {
      height: 380,
      xaxis: axis(what, {
        dtick: each.length <= 20 ? 1 : undefined, showgrid: false, range: [0.4, each.length + 0.6],
      }),
      yaxis: axis(height, { tickformat: share ? "~%" : undefined, range: [0, top] }),
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      bargap: 0.25,
    });
  };
};

show.curve = (name, { row, axis: height, over, along }) => {
  const [across, up] = [unpack(over), unpack(along)];
  const what = row[0].toUpperCase() + row.slice(1);
  charts[name] = () => draw(name, [{
    type: "scatter", mode: up.length > 40 ? "lines" : "lines+markers", x: across, y: up,
    line: { color: colour("--accent"), width: 2 }, marker: { size: 6 },
    hovertemplate: `${what} %{x}: %{y:.5g}<extra></extra>`,
  }], {
    height: 380, showlegend: false, yaxis: axis(height),
    xaxis: axis(what, { showgrid: false, dtick: across.length <= 20 ? 1 : undefined }),
  });
};

// Where panels lie: plotly counts their axes x, x2, x3 ...; without panels there is one, which fills the chart.
const GAP = { across: 0.06, up: 90 }; // between panels: of the width, in pixels (for titles and ticks)
const ending = (i) => (i ? String(i + 1) : "");

function panelled(panels, across, up) {
  const common = {
    dragmode: fingers ? false : "zoom", // a finger on the chart scrolls the page
    hovermode: "closest",
    showlegend: false, // categories have one of their own, which the keyboard reaches
  };
  if (!panels) {
    const height = narrow.matches ? 460 : 560;
    return { ...common, height, xaxis: axis(across, { zeroline: true }), yaxis: axis(up, { zeroline: true }) };
  }
  const columns = narrow.matches ? 1 : Math.min(panels.length, panels.length === 4 ? 2 : 3);
  const rows = Math.ceil(panels.length / columns);
  const each = { 1: 460, 2: 420, 3: 340 }[columns];
  const height = rows * each + (rows - 1) * GAP.up;
  const found = { ...common, height: height + 90, margin: { l: 20, r: 12, t: 44, b: 20 }, annotations: [] };
  panels.forEach((name, i) => {
    const column = i % columns;
    const row = Math.floor(i / columns);
    const width = (1 - (columns - 1) * GAP.across) / columns;
    const left = column * (width + GAP.across);
    const top = 1 - (row * (each + GAP.up)) / height;
    const end = ending(i);
    // All to one scale: zooming in one zooms in all.
    found[`xaxis${end}`] = axis(across, {
      zeroline: true, domain: [left, left + width], anchor: `y${end}`, ...(i && { matches: "x" }),
    });
    found[`yaxis${end}`] = axis(column ? "" : up, {
      zeroline: true, domain: [top - each / height, top], anchor: `x${end}`, ...(i && { matches: "y" }),
    });
    found.annotations.push({
      text: literal(name), showarrow: false, font: { size: 14 }, xref: "paper", yref: "paper",
      x: left, xanchor: "left", y: top, yanchor: "bottom", yshift: 4,
    });
  });
  return found;
}

const ZOOM = ["zoom2d", "pan2d", "resetScale2d"];

// The same component both ways shows nothing: choosing one that is taken swaps the two.
function watchAxes() {
  const before = { across: chosen("across"), up: chosen("up") };
  for (const [id, other] of [["across", "up"], ["up", "across"]]) {
    document.getElementById(id).addEventListener("change", () => {
      if (chosen(id) === chosen(other)) document.getElementById(other).value = before[id];
      Object.assign(before, { across: chosen("across"), up: chosen("up") });
      charts.scores();
    });
  }
}

show.points = (name, { axes, names, labels, panels, ...packed }) => {
  const columns = packed.columns.map(unpack);
  const panel = panels && unpack(packed.panel);
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

  // Some of the points: a trace, or one for each panel. `marker` tells how the points of a trace look.
  const points = (across, up, rows, label, marker) => (panels || [""]).map((_, p) => {
    const here = panels ? rows.filter((i) => panel[i] === p) : rows;
    return {
      type: "scatter", mode: "markers", xaxis: `x${ending(p)}`, yaxis: `y${ending(p)}`,
      x: here.map((i) => columns[across][i]),
      y: here.map((i) => columns[up][i]),
      text: here.map((i) => hover(i, label(i))),
      marker: { size, opacity, ...marker(here, p) },
      hovertemplate: "<b>%{text}</b><br>%{x:.4g}, %{y:.4g}<extra></extra>",
    };
  });

  const known = labels ? all.filter((i) => !Number.isNaN(values[i])) : [];
  const [least, largest] = [Math.min, Math.max].map((pick) => pick(...known.map((i) => values[i])));

  const traces = (across, up) => {
    if (!labels) return points(across, up, all, () => undefined, () => ({ color: colour("--accent") }));
    if (labels.categories) {
      return labels.categories.flatMap((category, c) => points(
        across, up, hidden.has(c) ? [] : all.filter((i) => values[i] === c), () => literal(category), () => look(c),
      ));
    }
    const missing = all.filter((i) => Number.isNaN(values[i]));
    const bar = narrow.matches ? { orientation: "h", y: -0.3, thickness: 12 } : { thickness: 14 };
    return [
      ...points(across, up, missing, () => "missing", () => ({ color: GREY, symbol: "x-thin-open" })),
      ...points(across, up, known, (i) => String(values[i]), (here, p) => ({
        color: here.map((i) => values[i]), colorscale: scale(), cmin: least, cmax: largest, showscale: p === 0,
        colorbar: { title: { text: short(labels.name) }, outlinewidth: 0, ...bar },
      })),
    ];
  };

  charts[name] = () => {
    const [across, up] = [chosen("across"), chosen("up")];
    draw(name, traces(across, up), panelled(panels, axes[across], axes[up]), ZOOM);
  };
  if (labels && labels.categories) legend(labels, look, hidden, () => charts[name]());
  watchAxes();
};

show.density = (name, { axes, limits, cells, counts, panels }) => {
  // Counts of a pair of axes, row by row from below; zero cells stay empty.
  const table = (across, up, p) => {
    const swapped = across > up;
    const flat = unpack(counts[p][swapped ? `${up} ${across}` : `${across} ${up}`]);
    return Array.from({ length: cells }, (_, row) => Array.from({ length: cells }, (_, column) => {
      const count = swapped ? flat[column * cells + row] : flat[row * cells + column];
      return count || null;
    }));
  };
  const centres = ([low, high]) => Array.from({ length: cells }, (_, i) => low + ((i + 0.5) / cells) * (high - low));
  const powers = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

  charts[name] = () => {
    const [across, up] = [chosen("across"), chosen("up")];
    const found = counts.map((_, p) => table(across, up, p));
    const most = Math.log10(Math.max(1, ...found.flat(2)));
    draw(name, found.map((here, p) => ({
      type: "heatmap", xaxis: `x${ending(p)}`, yaxis: `y${ending(p)}`,
      x: centres(limits[across]), y: centres(limits[up]),
      z: here.map((row) => row.map((count) => count && Math.log10(count))), zmin: 0, zmax: most || 1,
      customdata: here, colorscale: scale(), hoverongaps: false, showscale: p === 0,
      colorbar: {
        title: { text: "samples" }, outlinewidth: 0,
        tickvals: powers, ticktext: powers.map((power) => `${10 ** power}`),
        ...(narrow.matches ? { orientation: "h", y: -0.3, thickness: 12 } : { thickness: 14 }),
      },
      hovertemplate: "%{customdata} samples<br>near %{x:.4g}, %{y:.4g}<extra></extra>",
    })), panelled(panels, axes[across], axes[up]), ZOOM);
  };
  watchAxes();
};

// Samples by what is wrong with them: nothing, far out along the components, far from these, both; where it is not the
// lines that tell, samples beyond one that are no outliers, and outliers that are within both. An axis on which samples
// are farther than ten times its limit is logarithmic beyond that.
show.distances = (name, { limits, names, farthest, ...packed }) => {
  const [score, orthogonal, numbers, outliers] = [
    packed.score, packed.orthogonal, packed.numbers, packed.outliers,
  ].map(unpack);
  const kinds = [
    ["within both lines", "--accent", "circle"],
    ["extreme along the components", COLOURS[2], "square"],
    ["far from the components", COLOURS[1], "diamond"],
    ["both", "--against", "x"],
    ["beyond a line, no outlier", "--soft", "circle-open"],
    ["outlier within both lines", "--against", "circle"],
  ];
  const all = Array.from(score, (_, i) => i);
  const kind = all.map((i) => {
    const beyond = (score[i] > limits[0] ? 1 : 0) + (orthogonal[i] > limits[1] ? 2 : 0);
    if (outliers[i]) return beyond || 5;
    return beyond ? 4 : 0;
  });
  const size = score.length <= 300 ? 8 : score.length <= 3000 ? 6 : 4;
  const called = (i) => literal(names ? names[i] : `Sample ${numbers[i] + 1}`);
  const most = [score, orthogonal].map((values) => values.reduce((a, b) => Math.max(a, b), 0));
  const bent = limits.map((limit, a) => limit > 0 && most[a] > 10 * limit);
  const place = (value, a) => (bent[a] && value > limits[a] ? limits[a] * (1 + Math.log10(value / limits[a])) : value);
  const ends = limits.map((limit, a) => 1.06 * (place(Math.max(most[a], 1.1 * limit), a) || 1));
  const ticks = (a) => {
    if (!bent[a]) return {};
    const first = Math.ceil(Math.log10(limits[a]));
    const powers = Array.from({ length: Math.max(Math.floor(Math.log10(most[a])) - first + 1, 0) }, (_, i) => 10 ** (first + i));
    const values = [0, ...powers];
    return { tickvals: values.map((value) => place(value, a)), ticktext: values.map((value) => String(Number(value.toPrecision(1)))) };
  };
  const line = (ends) => ({
    type: "line", line: { color: colour("--soft"), width: 1, dash: "dash" }, layer: "below", ...ends,
  });
  const drawn = kinds.map((_, c) => c).filter((c) => c < 4 || kind.includes(c));
  charts[name] = () => draw(name, drawn.map((c) => {
    const [what, shade, symbol] = kinds[c];
    const mine = all.filter((i) => kind[i] === c);
    return {
      type: "scatter", mode: "markers", name: `${what}: ${mine.length}`,
      x: mine.map((i) => place(score[i], 0)), y: mine.map((i) => place(orthogonal[i], 1)), text: mine.map(called),
      customdata: mine.map((i) => [score[i], orthogonal[i]]),
      marker: { size, symbol, opacity: 0.85, color: shade.startsWith("--") ? colour(shade) : shade },
      hovertemplate: "<b>%{text}</b><br>score distance %{customdata[0]:.4g}<br>orthogonal distance "
        + "%{customdata[1]:.4g}<extra></extra>",
    };
  }), {
    height: narrow.matches ? 460 : 560, hovermode: "closest", dragmode: fingers ? false : "zoom", showlegend: true,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    xaxis: axis("Score distance", { range: [0, ends[0]], zeroline: false, ...ticks(0) }),
    yaxis: axis("Orthogonal distance", { range: [0, ends[1]], zeroline: false, ...ticks(1) }),
    shapes: [
      line({ x0: limits[0], x1: limits[0], yref: "paper", y0: 0, y1: 1 }),
      line({ y0: limits[1], y1: limits[1], xref: "paper", x0: 0, x1: 1 }),
    ],
    annotations: farthest.map((i) => {
      const left = place(score[i], 0) > 0.8 * ends[0]; // else the name would leave the chart
      const text = short(names ? names[i] : String(numbers[i] + 1));
      return {
        x: place(score[i], 0), y: place(orthogonal[i], 1), text, showarrow: false, font: { size: 11 },
        xanchor: left ? "right" : "left", xshift: left ? -6 : 6,
      };
    }),
  }, ZOOM);
};

// Cells that are not as the components say; on the left, rows more than half of whose cells are not.
show.cells = (name, { shape: [tall, wide], features, samples, ...packed }) => {
  const [shades, missing, worst, row, column, rowEdges, columnEdges, badRows] = [
    "shades", "missing", "worst", "row", "column", "rowEdges", "columnEdges", "badRows",
  ].map((key) => unpack(packed[key]));
  const table = (value) => Array.from({ length: tall }, (_, i) => Array.from({ length: wide }, (_, j) => (
    value(i * wide + j, i, j)
  )));
  const rowName = (i) => (samples ? literal(samples[i]) : `Sample ${i + 1}`);
  const columnName = (j) => (features ? literal(features[j]) : `column ${j + 1}`);
  const blocks = tall < rowEdges[tall] || wide < columnEdges[wide];
  const said = (at) => {
    const gone = missing[at] === 1 ? "missing" : `${worst[at] > 0 ? "+" : ""}${worst[at].toPrecision(3)} sd`;
    const what = `<b>${rowName(row[at])}</b><br>${columnName(column[at])}: ${gone}`;
    if (!blocks) return what;
    return `farthest of its neighbours:<br>${what}${missing[at] ? `<br>${(100 * missing[at]).toFixed(0)} % missing` : ""}`;
  };
  const texts = table(said);
  const ticks = (edges, room, text) => {
    const step = Math.ceil((edges.length - 1) / room);
    const places = Array.from({ length: Math.ceil((edges.length - 1) / step) }, (_, i) => i * step);
    return { tickvals: places, ticktext: places.map((i) => text(edges[i])), showgrid: false, zeroline: false, ticks: "" };
  };
  const left = -0.5 - 0.025 * wide; // of the bars
  const cell = {
    type: "heatmap", x: Array.from({ length: wide }, (_, j) => j), y: Array.from({ length: tall }, (_, i) => i),
    text: texts, hovertemplate: "%{text}<extra></extra>", xgap: wide <= 60 ? 1 : 0, ygap: tall <= 60 ? 1 : 0,
  };
  charts[name] = () => draw(name, [
    {
      ...cell, z: table((at) => shades[at]), zmin: -1, zmax: 1,
      colorscale: [[0, colour("--accent")], [0.5, colour("--card")], [1, colour("--against")]],
      colorbar: {
        orientation: "h", y: 1, yanchor: "bottom", thickness: 10, len: narrow.matches ? 1 : 0.5, outlinewidth: 0,
        tickvals: [-1, 0, 1], ticktext: ["too low", "as expected", "too high"],
      },
    },
    { ...cell, z: table((at) => missing[at] || null), zmin: 0, zmax: 1, colorscale: [[0, "#0000"], [1, GREY]], showscale: false },
    {
      type: "heatmap", x: [left, left + 0.015 * wide], y: cell.y, z: Array.from(badRows, (share) => [share || null]), zmin: 0, zmax: 1,
      colorscale: [[0, colour("--line")], [1, colour("--ink")]], showscale: false, ygap: cell.ygap,
      text: Array.from(badRows, (share, i) => [
        share === 1 && rowEdges[i + 1] - rowEdges[i] === 1
          ? `<b>${rowName(rowEdges[i])}</b><br>bad: more than half of their cells are`
          : `${(100 * share).toFixed(0)} % of ${rowEdges[i + 1] - rowEdges[i]} rows are bad`,
      ]),
      hovertemplate: "%{text}<extra></extra>",
    },
  ], {
    height: 130 + Math.min(Math.max(15 * tall, 300), 800), hovermode: "closest", dragmode: fingers ? false : "zoom",
    plot_bgcolor: colour("--card"),
    xaxis: axis("", {
      range: [left, wide - 0.5], ...ticks(columnEdges, narrow.matches ? 12 : 40, (j) => (features ? short(features[j], 14) : j + 1)),
    }),
    yaxis: axis("", {
      autorange: "reversed", ...ticks(rowEdges, 30, (i) => (samples ? short(samples[i], 14) : i + 1)),
    }),
  }, ZOOM);
};

show.loadings = (name, { features, heatMap, marks, axis: what, bars, ...packed }) => {
  const end = name.replace(/^loadings/, ""); // as the template does
  const weights = packed.weights.map(unpack); // by component

  // Features stand at numbers, not at their names: names may be equal.
  const names = (rows) => axis("", {
    tickvals: rows.map((_, i) => i), ticktext: rows.map((j) => short(features[j])),
    range: [rows.length - 0.5, -0.5], showgrid: false, zeroline: false, ticks: "",
  });

  charts[`bars${end}`] = () => {
    const chosenWeights = weights[chosen(`component${end}`)];
    const rows = features.map((_, j) => j)
      .sort((a, b) => Math.abs(chosenWeights[b]) - Math.abs(chosenWeights[a]))
      .slice(0, bars);
    const values = rows.map((j) => chosenWeights[j]);
    draw(`bars${end}`, [{
      type: "bar", orientation: "h", x: values, y: rows.map((_, i) => i),
      text: rows.map((j) => literal(features[j])), textposition: "none",
      marker: { color: values.map((value) => colour(value < 0 ? "--against" : "--accent")) },
      hovertemplate: "<b>%{text}</b><br>%{x:.4f}<extra></extra>",
    }], { height: 90 + 25 * Math.max(rows.length, 3), xaxis: axis("Weight"), yaxis: names(rows), bargap: 0.3 });
  };
  document.getElementById(`component${end}`).addEventListener("change", charts[`bars${end}`]);

  charts[`heat-map${end}`] = () => {
    const largest = Math.max(...weights.flatMap((column) => heatMap.map((j) => Math.abs(column[j])))) || 1;
    draw(`heat-map${end}`, [{
      type: "heatmap", x: weights.map((_, c) => c + 1), y: heatMap.map((_, i) => i),
      z: heatMap.map((j) => weights.map((column) => column[j])),
      text: heatMap.map((j) => marks.map((mark) => `<b>${literal(features[j])}</b><br>${what.toLowerCase()} ${mark}`)),
      colorscale: [[0, colour("--against")], [0.5, colour("--middle")], [1, colour("--accent")]],
      zmin: -largest, zmax: largest, xgap: 1, ygap: 1,
      colorbar: { orientation: "h", y: 1, yanchor: "bottom", thickness: 10, len: 1, outlinewidth: 0, nticks: 5 },
      hovertemplate: "%{text}: %{z:.4f}<extra></extra>",
    }], {
      height: 150 + (heatMap.length > 30 ? 15 : 18) * Math.max(heatMap.length, 6),
      xaxis: axis(what, { tickvals: marks.map((_, c) => c + 1), ticktext: marks, showgrid: false, zeroline: false }),
      yaxis: names(heatMap),
    });
  };
};

// Atoms as small pictures on one canvas, and the chosen one large.
show.atoms = (name, { values, shape, features, names, marks, axis: what, places }) => {
  const end = `-${name}`;
  const atoms = values.map(unpack);
  const box = document.getElementById(`mosaic${end}`);
  const select = document.getElementById(`component${end}`);
  const canvas = document.createElement("canvas");
  box.append(canvas);
  box.classList.toggle("pixels", Boolean(shape));
  const [tall, wide] = shape ? shape : [48, 72];
  const GAP = shape ? 1 : 8;
  const columns = Math.min(atoms.length, Math.max(4, Math.ceil(Math.sqrt(atoms.length * (shape ? tall / wide : 0.8)))));
  const place = (k) => [(k % columns) * (wide + GAP), Math.floor(k / columns) * (tall + GAP)];

  const pixels = (brush, k) => {
    const image = brush.createImageData(wide, tall);
    const coloured = shape.length === 3;
    const [left, top] = place(k);
    brush.fillStyle = colour("--line"); // an edge, for atoms as light as the page
    brush.fillRect(left - 1, top - 1, wide + 2, tall + 2);
    for (let i = 0; i < tall * wide; i += 1) {
      for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = atoms[k][coloured ? 3 * i + c : i];
      image.data[4 * i + 3] = 255;
    }
    brush.putImageData(image, left, top);
  };
  const line = (brush, k) => {
    const [left, top] = place(k);
    const largest = atoms[k].reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    const x = (j) => left + (atoms[k].length === 1 ? wide / 2 : (j * wide) / (atoms[k].length - 1));
    const y = (value) => top + tall / 2 - (value / largest) * (tall / 2 - 1);
    brush.strokeStyle = colour("--line");
    brush.lineWidth = 1;
    brush.strokeRect(left - 2, top - 2, wide + 4, tall + 4);
    brush.beginPath();
    brush.moveTo(left, y(0));
    brush.lineTo(left + wide, y(0));
    brush.stroke();
    brush.strokeStyle = colour("--accent");
    brush.lineWidth = 1.2;
    brush.beginPath();
    atoms[k].forEach((value, j) => (j ? brush.lineTo(x(j), y(value)) : brush.moveTo(x(j), y(value))));
    brush.stroke();
  };

  charts[`mosaic${end}`] = () => {
    const sharp = shape ? 1 : 2; // lines are drawn finer than they are shown
    const rows = Math.ceil(atoms.length / columns);
    const edge = shape ? 0 : 3;
    canvas.width = sharp * (columns * (wide + GAP) - GAP + 2 * edge);
    canvas.height = sharp * (rows * (tall + GAP) - GAP + 2 * edge);
    const brush = canvas.getContext("2d");
    if (!shape) brush.setTransform(sharp, 0, 0, sharp, sharp * edge, sharp * edge);
    atoms.forEach((_, k) => (shape ? pixels : line)(brush, k));
  };
  const under = (event) => {
    const seen = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - seen.left) / seen.width) * columns);
    const row = Math.floor(((event.clientY - seen.top) / seen.height) * Math.ceil(atoms.length / columns));
    return Math.min(Math.max(row, 0) * columns + Math.min(Math.max(column, 0), columns - 1), atoms.length - 1);
  };
  canvas.addEventListener("mousemove", (event) => { canvas.title = names[under(event)]; });
  canvas.addEventListener("click", (event) => {
    select.value = String(under(event));
    charts[`large${end}`]();
  });

  const asImage = (k) => {
    const large = document.createElement("canvas");
    [large.width, large.height] = [wide, tall];
    const brush = large.getContext("2d");
    brush.drawImage(canvas, ...place(k), wide, tall, 0, 0, wide, tall);
    // Pixels stay pixels, however large.
    const scaled = document.createElement("canvas");
    const times = Math.max(1, Math.round(480 / Math.max(wide, tall)));
    [scaled.width, scaled.height] = [wide * times, tall * times];
    const fine = scaled.getContext("2d");
    fine.imageSmoothingEnabled = false;
    fine.drawImage(large, 0, 0, scaled.width, scaled.height);
    return scaled.toDataURL();
  };

  charts[`large${end}`] = () => {
    const k = Number(select.value);
    const title = `${what} ${marks[k]}`;
    if (shape) {
      const edge = { showline: true, mirror: true, linecolor: colour("--line") };
      const bare = { showgrid: false, zeroline: false, showticklabels: false, ticks: "", ...edge };
      draw(`large${end}`, [{ type: "scatter", x: [], y: [] }], {
        height: 380, title: { text: literal(title), font: { size: 14 } },
        images: [{
          source: asImage(k), xref: "x", yref: "y", x: 0, y: tall, sizex: wide, sizey: tall, sizing: "stretch",
          layer: "above",
        }],
        xaxis: { ...bare, range: [0, wide], constrain: "domain" },
        yaxis: { ...bare, range: [0, tall], scaleanchor: "x", constrain: "domain" },
      });
      return;
    }
    const few = features.length <= 30;
    draw(`large${end}`, [{
      type: "scatter", mode: few ? "lines+markers" : "lines", x: features.map((_, j) => j), y: atoms[k],
      text: features.map(literal), line: { color: colour("--accent"), width: 2 },
      hovertemplate: "<b>%{text}</b><br>%{y:.4g}<extra></extra>",
    }], {
      height: 380, title: { text: literal(title), font: { size: 14 } },
      xaxis: axis(places, {
        showgrid: false, zeroline: false,
        ...(few ? { tickvals: features.map((_, j) => j), ticktext: features.map((text) => short(text, 12)) } : {}),
      }),
      yaxis: axis("", { zeroline: true }),
    });
  };
  select.addEventListener("change", charts[`large${end}`]);
};

for (const [name, section] of Object.entries(data.sections)) show[section.kind](name, section);

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
