/** A chart of stacked bars over time, with the same figures as a table. */

import { type Column, ListTable } from "./list_table.tsx";

/** A kind of part of the bars. Its `tone` is a class of theme.css. */
export interface Series {
  name: string;
  tone: "good" | "wait" | "bad" | "warn";
}

/** A bar: the span of time that it stands for, and the value of each series. */
export interface Bar {
  label: string;
  values: readonly number[];
}

/** Height of the plot and width of a bar with its gap, in the units of the drawing. */
const HEIGHT = 100;
const GAP = 0.2;

/** The chart. Bars without a value are not in the table. */
export function BarChart(props: {
  /** Names the chart, also for screen readers. */
  title: string;
  series: readonly Series[];
  bars: readonly Bar[];
  format: (value: number) => string;
}) {
  const { title, series, bars, format } = props;
  const sums = bars.map(({ values }) => sumOf(values));
  const most = Math.max(1, ...sums);
  const totals = series.map((_, n) => sumOf(bars.map(({ values }) => values[n]!)));
  const sums_text = series.map(({ name }, n) => `${name} ${format(totals[n]!)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {series.map(({ name, tone }, n) => (
            <li key={name} class={tone}>
              {name} <strong>{format(totals[n]!)}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot">
        <span class="most" aria-hidden="true">{format(most)}</span>
        <svg
          viewBox={`0 0 ${bars.length} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}: ${sums_text}`}
        >
          {bars.map((bar, at) => (
            <g key={bar.label}>
              <title>{textOf(bar, series, format)}</title>
              <rect class="slot" x={at} y={0} width={1} height={HEIGHT} />
              {bar.values.map((value, n) => {
                const below = sumOf(bar.values.slice(0, n));
                return value > 0 && (
                  <rect
                    key={n}
                    class={series[n]!.tone}
                    x={at + GAP / 2}
                    y={HEIGHT * (1 - (below + value) / most)}
                    width={1 - GAP}
                    height={HEIGHT * value / most}
                  />
                );
              })}
            </g>
          ))}
        </svg>
        <p class="ends" aria-hidden="true">
          <span>{bars[0]?.label}</span>
          <span>{bars.at(-1)?.label}</span>
        </p>
      </div>
      <details>
        <summary>Show as a table</summary>
        <ListTable
          label={title}
          items={bars.flatMap(({ label: id, values }, at) => sums[at]! > 0 ? [{ id, values }] : [])}
          columns={[
            { heading: "From", is_name: true, cell: ({ id }) => id },
            ...series.map(({ name }, n): Column<{ id: string; values: readonly number[] }> => ({
              heading: name,
              class: "right",
              cell: ({ values }) => format(values[n]!),
            })),
          ]}
        />
      </details>
    </figure>
  );
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function textOf(bar: Bar, series: readonly Series[], format: (value: number) => string): string {
  const parts = series.flatMap(({ name }, n) =>
    bar.values[n]! > 0 ? [`${name} ${format(bar.values[n]!)}`] : []
  );
  return [bar.label, ...(parts.length === 0 ? ["nothing"] : parts)].join("\n");
}
