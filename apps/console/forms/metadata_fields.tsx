/** The fields for metadata: rows of names and values. */

import { FieldFault, useFault } from "../parts/fields.tsx";

type Row = readonly [name: string, value: string];
/** The rows of a form. */
export type MetadataRows = readonly Row[];

/** The rows. The error of any row is shown below all of them. */
export function MetadataFields(
  props: { rows: MetadataRows; set: (rows: MetadataRows) => void },
) {
  const { rows, set } = props;
  const fault = useFault(["metadata"]);
  const replace = (index: number, row: Row) => set(rows.with(index, row));
  const attributes = fault
    ? { "aria-invalid": "true", "aria-describedby": "metadata-error" } as const
    : {};
  return (
    <fieldset class="metadata">
      <legend>
        Metadata <span class="optional">optional</span>
      </legend>
      {rows.map(([name, value], index) => (
        <div key={index} class="row pair">
          <input
            {...attributes}
            type="text"
            aria-label={`Name ${index + 1}`}
            placeholder="order_id"
            autoComplete="off"
            value={name}
            onInput={(event) => replace(index, [event.currentTarget.value, value])}
          />
          <input
            {...attributes}
            type="text"
            aria-label={`Value ${index + 1}`}
            placeholder="6735"
            autoComplete="off"
            value={value}
            onInput={(event) => replace(index, [name, event.currentTarget.value])}
          />
          <button
            type="button"
            class="plain"
            aria-label={`Remove ${name || `row ${index + 1}`}`}
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
