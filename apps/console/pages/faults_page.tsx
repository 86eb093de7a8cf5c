/** The list of declared faults, and the page that declares one. */

import { useState } from "preact/hooks";
import type { Fault } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "../parts/confirm_dialog.tsx";
import { Crumb } from "../parts/crumb.tsx";
import { draftOf, faultBody, FaultFields } from "../forms/fault_form.tsx";
import { showFlash } from "../data/flash.ts";
import { Form } from "../parts/form.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { go, href, hrefOfList } from "../data/route.ts";
import { Time, TimeColumn } from "../parts/text.tsx";
import { label } from "../data/words.ts";

/** Number of faults on a page. */
const PAGE_SIZE = 20;

/** All declared faults, newest first. */
export function FaultsPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { starting_after = "" } = query;
  const params = { limit: PAGE_SIZE, ...(starting_after !== "" && { starting_after }) };
  const live = useLive(call("sandbox", "listFaults", params), { logged: true });
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Faults</h1>
        <a class="button primary" href={href(["faults", "new"])}>Declare a fault</a>
      </div>
      <Reading label="faults" live={live} rows={3}>
        {(page) =>
          page.data.length === 0 && starting_after === ""
            ? (
              <Empty title="No faults yet">
                <p>
                  A fault makes the next matching request, delivery or call to the simulated
                  provider fail.
                </p>
                <a class="button" href={href(["faults", "new"])}>Declare the first fault</a>
              </Empty>
            )
            : (
              <>
                <FoldedFaults faults={page.data} />
                <Pager page={page} steps={["faults"]} query={query} />
              </>
            )}
      </Reading>
    </>
  );
}

/** The faults that can still happen. Those that cannot are folded away below. */
function FoldedFaults({ faults }: { faults: readonly Fault[] }) {
  const open = faults.filter(({ left }) => left > 0);
  const spent = faults.filter(({ left }) => left === 0);
  return (
    <>
      {open.length > 0
        ? <FaultTable faults={open} label="Declared faults" />
        : <Empty title="No fault can still happen" />}
      {spent.length > 0 && (
        <details class="spent">
          <summary>{spent.length === 1 ? "1 spent fault" : `${spent.length} spent faults`}</summary>
          <FaultTable faults={spent} label="Spent faults" />
        </details>
      )}
    </>
  );
}

/** The page of one fault. */
export function FaultPage({ id }: { id: string }) {
  const live = useLive(call("sandbox", "retrieveFault", id), { logged: true });
  return (
    <>
      <div class="title">
        <Crumb section="faults" label="Faults" />
        <h1 tabIndex={-1}>Fault</h1>
      </div>
      <Reading label="this fault" live={live} rows={1}>
        {(fault) => <FaultTable faults={[fault]} label="The fault" leave={() => go(["faults"])} />}
      </Reading>
    </>
  );
}

function FaultTable(props: { faults: readonly Fault[]; label: string; leave?: () => void }) {
  const { faults, leave } = props;
  const [deleting, setDeleting] = useState<Fault | null>(null);
  return (
    <>
      <ListTable label={props.label}>
        <thead>
          <tr>
            <th scope="col">Fault</th>
            <th scope="col">Left</th>
            <TimeColumn name="Declared" />
            <td></td>
          </tr>
        </thead>
        <tbody>
          {faults.map((fault) => (
            <tr key={fault.id}>
              <td class="grow">
                {label(fault.on)}: {label(fault.fault)}
                <p class="quiet">{conditionsOf(fault)}</p>
              </td>
              <td>{fault.left} of {fault.times}</td>
              <td class="when wide-only">
                <Time at={fault.created_at} />
              </td>
              <td>
                <button
                  type="button"
                  aria-label={`Delete the fault ${fault.id}`}
                  onClick={() => setDeleting(fault)}
                >
                  Delete…
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </ListTable>
      {deleting && (
        <ConfirmDialog
          title="Delete the fault?"
          keep="Keep fault"
          act="Delete fault"
          acting="Deleting…"
          build={(options) => call("sandbox", "deleteFault", deleting.id, options)}
          done="Fault deleted."
          leave={leave}
          close={() => setDeleting(null)}
        >
          <p>
            <strong>{label(deleting.on)}: {label(deleting.fault)}.</strong> {effectOf(deleting)}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** Returns the effect of a delete. */
function effectOf({ left, times }: Fault): string {
  if (left === 0) {
    return "It has happened as often as declared. The list does not show it any more.";
  }
  return `It does not happen any more: ${left} of ${times} ${left === 1 ? "is" : "are"} left.`;
}

/** Returns the conditions of a fault in one line. */
function conditionsOf({ where, delay_ms }: Fault): string {
  const values = Object.entries(where).map(([name, value]) => `${name} ${value}`);
  return [
    ...(delay_ms === null ? [] : [`${delay_ms} ms`]),
    ...(values.length === 0 ? ["Everything of this kind"] : values),
  ].join(" · ");
}

/** The page for a new fault. */
export function NewFaultPage() {
  const [draft, setDraft] = useState(draftOf());
  return (
    <>
      <div class="title">
        <Crumb section="faults" label="Faults" />
        <h1 tabIndex={-1}>Declare a fault</h1>
      </div>
      <div class="narrow">
        <Form
          build={(options) => call("sandbox", "createFault", faultBody(draft), options)}
          done={() => {
            go(["faults"]);
            showFlash("Fault declared.");
          }}
          actions={(sending) => (
            <>
              <button type="submit" class="primary" aria-disabled={sending}>
                {sending ? "Declaring…" : "Declare fault"}
              </button>
              <a class="button" href={hrefOfList("faults")}>Cancel</a>
            </>
          )}
        >
          <FaultFields
            draft={draft}
            change={(changed) => setDraft((last) => ({ ...last, ...changed }))}
          />
        </Form>
      </div>
    </>
  );
}
