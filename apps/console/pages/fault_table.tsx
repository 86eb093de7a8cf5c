/** The tables of declared faults, and the page of one of them. */

import { useState } from "preact/hooks";
import type { Fault } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "../parts/confirm_dialog.tsx";
import { ListTable, timeColumn } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { Title } from "../parts/page_parts.tsx";
import { go, href } from "../data/route.ts";
import { label } from "../data/words.ts";

export function FaultPage({ id }: { id: string }) {
  const live = useLive(call("sandbox", "retrieveFault", id), { logged: true });
  const [choose, dialog] = useDeleteDialog(() => go(["faults"]));
  return (
    <>
      <Title crumb="faults" title="Fault" />
      <Reading label="this fault" live={live} rows={1}>
        {(fault) => <FaultTable faults={[fault]} label="The fault" choose={choose} />}
      </Reading>
      {dialog}
    </>
  );
}

/** The faults that can still happen. Those that cannot are folded away below. */
export function FoldedFaults({ faults }: { faults: readonly Fault[] }) {
  const [choose, dialog] = useDeleteDialog();
  const open = faults.filter(({ left }) => left > 0);
  const spent = faults.filter(({ left }) => left === 0);
  return (
    <>
      {open.length > 0
        ? <FaultTable faults={open} label="Declared faults" choose={choose} />
        : <Empty title="No fault can still happen" />}
      {spent.length > 0 && (
        <details class="spent">
          <summary>{spent.length === 1 ? "1 spent fault" : `${spent.length} spent faults`}</summary>
          <FaultTable faults={spent} label="Spent faults" choose={choose} />
        </details>
      )}
      {dialog}
    </>
  );
}

/** The table. `choose` gets the fault to delete. */
function FaultTable(
  props: { faults: readonly Fault[]; label: string; choose: (fault: Fault) => void },
) {
  return (
    <ListTable
      label={props.label}
      items={props.faults}
      columns={[
        {
          heading: "Fault",
          class: "grow",
          cell: (fault) => (
            <>
              {label(fault.on)}: {label(fault.fault)}
              <p class="quiet">
                {conditionsOf(fault)}
                {fault.on !== "delivery" && (
                  <>
                    {" · "}
                    <a href={href(["requests"], { source: "any", fault_id: fault.id })}>
                      Its requests
                    </a>
                  </>
                )}
              </p>
            </>
          ),
        },
        { heading: "Left", cell: ({ left, times }) => `${left}\u00a0of\u00a0${times}` },
        timeColumn("Declared"),
        {
          cell: (fault) => (
            <button
              type="button"
              aria-label={`Delete the fault ${fault.id}`}
              onClick={() => props.choose(fault)}
            >
              Delete…
            </button>
          ),
        },
      ]}
    />
  );
}

/**
 * The dialog that deletes a fault, outside of the tables: a fault that happens meanwhile changes
 * its table. `leave` runs after the delete.
 */
function useDeleteDialog(leave?: () => void) {
  const [fault, choose] = useState<Fault | null>(null);
  const dialog = fault && (
    <ConfirmDialog
      act="Delete fault"
      build={(options) => call("sandbox", "deleteFault", fault.id, options)}
      done={() => {
        leave?.();
        return "Fault deleted.";
      }}
      close={() => choose(null)}
    >
      <p>
        <strong>{label(fault.on)}: {label(fault.fault)}.</strong> {effectOf(fault)}
      </p>
    </ConfirmDialog>
  );
  return [choose, dialog] as const;
}

function effectOf({ left, times }: Fault): string {
  if (left === 0) {
    return "It has happened as often as declared. The list does not show it any more.";
  }
  return `It does not happen any more: ${left} of ${times} ${left === 1 ? "is" : "are"} left.`;
}

function conditionsOf({ where, delay_ms }: Fault): string {
  const values = Object.entries(where).map(([name, value]) => `${name} ${value}`);
  return [
    ...(delay_ms === null ? [] : [`${delay_ms} ms`]),
    ...(values.length === 0 ? ["Everything of this kind"] : values),
  ].join(" · ");
}
