"use strict";
// Draws every panel of the page, in the colours of light or dark, and again when the reader's choice changes.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)");
  const config = { responsive: true, displaylogo: false, displayModeBar: touch.matches ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const dashes = { solid: "", dash: "6 3", dashdot: "6 3 1.5 3", dot: "1.5 3" };

  function variable(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function faded(colour) {
    const part = (i) => parseInt(colour.slice(i, i + 2), 16);
    return "rgba(" + [part(1), part(3), part(5), dark.matches ? 0.24 : 0.17].join(",") + ")";
  }

  function traces(panel) {
    return panel.data.traces.map(function (trace) {
      const colour = trace.meta[dark.matches ? "dark" : "light"];
      const visible = !panel.hidden.has(trace.meta.series);
      if (trace.meta.role === "band") {
        return Object.assign({}, trace, { fillcolor: faded(colour), visible: visible });
      }
      const painted = Object.assign({}, trace, { line: Object.assign({ color: colour }, trace.line), visible: visible });
      if (trace.marker) { painted.marker = Object.assign({ color: colour }, trace.marker); }
      if (trace.error_y) { painted.error_y = Object.assign({ color: colour }, trace.error_y); }
      return painted;
    });
  }

  function layout(panel) {
    const grid = variable("--grid"), ink = variable("--ink"), soft = variable("--soft");
    const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: soft, zerolinewidth: 1.2, tickfont: { color: soft, size: 12 } };
    const given = panel.data.layout;
    return Object.assign({}, given, {
      xaxis: Object.assign({}, axis, given.xaxis, { title: Object.assign({ font: { color: soft, size: 13 } }, given.xaxis.title) }),
      yaxis: Object.assign({}, axis, given.yaxis),
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, family: getComputedStyle(document.body).fontFamily, size: 13 },
      hoverlabel: { bgcolor: variable("--card"), bordercolor: variable("--edge"), font: { color: ink }, align: "left" },
      margin: { l: 8, r: 12, t: 8, b: 8 },
      dragmode: touch.matches ? false : "zoom"  // a finger scrolls the page
    });
  }

  function draw(panel) {
    return Plotly.react(panel.place, traces(panel), layout(panel), config);
  }

  function swatch(entry) {
    const name = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(name, "svg"), line = document.createElementNS(name, "line");
    picture.setAttribute("width", "24");
    picture.setAttribute("height", "8");
    picture.setAttribute("aria-hidden", "true");
    [["x1", 0], ["x2", 24], ["y1", 4], ["y2", 4], ["stroke-width", 3], ["stroke-dasharray", dashes[entry.dash]]]
      .forEach((pair) => line.setAttribute(pair[0], pair[1]));
    picture.appendChild(line);
    return { picture: picture, paint: () => line.setAttribute("stroke", entry[dark.matches ? "dark" : "light"]) };
  }

  function legend(panel) {
    panel.data.legend.forEach(function (entry) {
      const button = document.createElement("button"), sample = swatch(entry);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(sample.picture, entry.label);
      button.addEventListener("click", function () {
        const shown = panel.hidden.delete(entry.series);
        if (!shown) { panel.hidden.add(entry.series); }
        button.setAttribute("aria-pressed", String(shown));
        draw(panel);
      });
      panel.swatches.push(sample);
      panel.legend.appendChild(button);
    });
  }

  const panels = Array.from(document.querySelectorAll(".plot"), function (place) {
    const panel = { place: place, data: JSON.parse(document.getElementById(place.id + "-data").textContent),
      legend: document.getElementById(place.id + "-legend"), hidden: new Set(), swatches: [] };
    legend(panel);
    return panel;
  });

  function drawAll() {
    const scheme = dark.matches ? "dark" : "light";
    panels.forEach((panel) => panel.swatches.forEach((sample) => sample.paint()));
    Promise.all(panels.map(draw)).then(function () { document.documentElement.dataset.drawn = scheme; });
  }

  drawAll();
  dark.addEventListener("change", drawAll);
})();
