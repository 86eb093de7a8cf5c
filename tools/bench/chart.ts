/**
 * Draws the CPU times of docs/benchmarks.md as a picture (SVG). It is drawn from the table of the
 * page, so both have the same figures.
 */

/** The part of the page with the table. */
const TABLE = /<!-- bench: lines -->([^]*?)<!-- bench: end -->/;
/** The lines that other programs have, and the programs that are no peers. */
const LINES = ["create", "get", "list of 10"];
const BESIDE = ["parent commit", "pgbench"];
/** Sizes in pixels. */
const WIDTH = 540;
const MARGIN = 20;
const BAR_X = 118;
const BAR_MOST = 330;
const BAR_HEIGHT = 16;
const ROW = 24;
const GROUP_HEAD = 34;
const GROUPS_Y = 104;
/** The colours of the documentation (apps/console/theme.css). */
const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #121815 }
  .title { font-size: 17px; font-weight: 600 }
  .group { font-weight: 600 }
  .note { fill: #55605b }
  .ground { fill: #ffffff }
  rect { fill: #a9b5b0 }
  .ours { fill: #0b6757; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e9eeec }
    .note { fill: #9ba8a3 }
    .ground { fill: #151a19 }
    rect { fill: #5a6763 }
    .ours { fill: #63cdb5 }
  }
`;

/** The CPU time of a program for a request. */
interface Bar {
  request: string;
  program: string;
  /** Where it stores a payment. */
  stores: string;
  cpu_us: number;
}

/** The picture of the table in docs/benchmarks.md. */
export function drawChart(page: string): string {
  const bars = readBars(page);
  const groups = Map.groupBy(bars, ({ request }) => request);
  const shapes: string[] = [];
  let y = GROUPS_Y;
  for (const [request, group] of groups) {
    shapes.push(text(MARGIN, y + 22, "group", request));
    y += GROUP_HEAD;
    const most = Math.max(...group.map(({ cpu_us }) => cpu_us));
    for (const [index, { program, cpu_us }] of group.entries()) {
      // The product is the first of each group.
      const style = index === 0 ? "ours" : "";
      const width = Math.max(1, Math.round(BAR_MOST * cpu_us / most));
      const base = y + 13;
      shapes.push(
        text(MARGIN, base, style, program),
        `<rect class="${style}" x="${BAR_X}" y="${y}" width="${width}" height="${BAR_HEIGHT}"/>`,
        text(BAR_X + width + 8, base, style, grouped(cpu_us)),
      );
      y += ROW;
    }
  }
  const height = y + MARGIN / 2;
  const [ours, ...others] = groups.values().next().value ?? [];
  const places = others.map(({ program, stores }) => `${program} ${stores}`).join(", ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" ` +
    `height="${height}" role="img" aria-labelledby="title desc">
<title id="title">${TITLE}</title>
<desc id="desc">${describe(bars)}</desc>
<style>${STYLE}</style>
${
      [
        `<rect class="ground" width="${WIDTH}" height="${height}" rx="8"/>`,
        text(MARGIN, 34, "title", TITLE),
        text(MARGIN, 58, "note", `A create stores a payment: ${ours?.program} ${ours?.stores},`),
        text(MARGIN, 78, "note", `${places}.`),
        ...shapes,
      ].join("\n")
    }
</svg>
`;
}

const TITLE = "CPU microseconds a request, 64 connections (less is better)";

/** The CPU times in words. */
function describe(bars: readonly Bar[]): string {
  return [...Map.groupBy(bars, ({ request }) => request)].map(([request, group]) =>
    `${request}: ${group.map(({ program, cpu_us }) => `${program} ${grouped(cpu_us)}`).join(", ")}`
  ).join("; ");
}

/** The rows of the table with a median CPU time, of the requests that peers have. */
function readBars(page: string): Bar[] {
  const [, table = ""] = TABLE.exec(page) ?? [];
  return [...table.matchAll(/^\| ([^|]+?) +\| ([^|]+?) +\| ([^|]+?) +\| +(\d+)/gm)].map(
    ([, request, program, stores, cpu]): Bar => ({
      request: request!,
      program: program!,
      stores: stores!,
      cpu_us: Number(cpu),
    }),
  ).filter(({ request, program }) => LINES.includes(request) && !BESIDE.includes(program));
}

/** A number with a space between its thousands. */
function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
}

function text(x: number, y: number, style: string, content: string): string {
  return `<text x="${x}" y="${y}" class="${style}">${content}</text>`;
}
