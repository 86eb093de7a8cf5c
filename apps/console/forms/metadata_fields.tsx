/** The fields for metadata: rows of names and values. */

import { FieldFault, useFault } from "../parts/fields.tsx";

type Row = readonly [name: string, value: string];
export type MetadataRows = readonly Row[];

/** The rows. The error of any row is shown below all of them. */
export function MetadataFields({ draft: { metadata: rows }, change }: {
  draft: { metadata: MetadataRows };
  change: (changed: { metadata: MetadataRows }) => void;
}) {
  const set = (metadata: MetadataRows) => change({ metadata });
  const fault = useFault(["metadata"]);
  const attributes = fault
    ? { "aria-invalid": "true", "aria-describedby": "metadata-error" } as const
    : {};
  return (
    <fieldset class="metadata">
      <legend>
        Metadata <span class="optional">optional</span>
      </legend>
      {rows.map((row, index) => (
        <div key={index} class="row pair">
          {([["Name", "order_id"], ["Value", "6735"]] as const).map(([part, placeholder], at) => (
            <input
              key={part}
              {...attributes}
              type="text"
              aria-label={`${part} ${index + 1}`}
              placeholder={placeholder}
              autoComplete="off"
              value={row[at]}
              onInput={({ currentTarget: { value } }) =>
                set(rows.with(index, at === 0 ? [value, row[1]] : [row[0], value]))}
            />
          ))}
          <button
            type="button"
            class="plain"
            aria-label={`Remove ${row[0] || `row ${index + 1}`}`}
            onClick={() => set(rows.filter((_, other) => other !== index))}
          >
            Remove
          </button>
        </div>
      ))}
      {fault && <FieldFault id="metadata-error" failure={fault} />}
      <button type="button" class="plain" onClick={() => set([...rows, ["", ""]])}>
        Add metadata
      </button>
    </fieldset>
  );
}
