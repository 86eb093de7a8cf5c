/** The fields of a fault. */

import type { CreateFaultInput } from "../../../packages/client/mod.ts";
import {
  EVENT_TYPES,
  FAULT_KINDS,
  FAULTS,
  METHOD_KINDS,
  PROVIDER_OPERATIONS,
  REQUEST_METHODS,
} from "../../../shared/core/vocabulary.ts";
import { Choices, SelectField, TextField } from "../parts/fields.tsx";
import { label } from "../data/words.ts";

type Kind = CreateFaultInput["on"];

/** The values of the fields. An empty condition is left out. */
interface FaultDraft {
  on: Kind;
  fault: string;
  times: string;
  delay_ms: string;
  where: Readonly<Record<string, string>>;
}

/** Returns the values of a new fault. */
export function draftOf(): FaultDraft {
  return { on: "request", fault: FAULTS.request[0], times: "1", delay_ms: "1000", where: {} };
}

/** Returns the body of the request. */
export function faultBody({ on, fault, times, delay_ms, where }: FaultDraft): CreateFaultInput {
  const conditions = Object.entries(where).filter(([, value]) => value !== "");
  return {
    on,
    fault,
    times: numberOf(times),
    ...(fault === "delay" && { delay_ms: numberOf(delay_ms) }),
    ...(conditions.length > 0 && { where: Object.fromEntries(conditions) }),
  } as CreateFaultInput;
}

/** Returns the number of a text. The API explains what is wrong with any other text. */
function numberOf(text: string): number {
  return (/^\d+$/.test(text.trim()) ? Number(text) : text) as number;
}

/** A condition with a list of values. */
function options(values: readonly string[]): (readonly [string, string])[] {
  return [["", "Any"], ...values.map((value) => [value, value] as const)];
}

/** The conditions of each kind: the name, the label, and the values of a list. */
const CONDITIONS: Readonly<
  Record<Kind, readonly (readonly [name: string, label: string, values?: readonly string[]])[]>
> = {
  request: [
    ["method", "Method", REQUEST_METHODS],
    ["path", "Path"],
    ["idempotency_key", "Idempotency key"],
  ],
  delivery: [["endpoint_id", "Endpoint"], ["event_type", "Event type", EVENT_TYPES]],
  provider: [
    ["method_kind", "Payment method", METHOD_KINDS],
    ["operation", "Operation", PROVIDER_OPERATIONS],
  ],
};

/** Texts in empty fields. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  path: "/v1/payments/{id}/refund",
  endpoint_id: "whe_…",
};

/** The fields, inside a form. */
export function FaultFields({ draft, change }: {
  draft: FaultDraft;
  change: (changed: Partial<FaultDraft>) => void;
}) {
  const { on, fault, where } = draft;
  return (
    <>
      <Choices
        label="Fails"
        name="on"
        class="segments"
        value={on}
        set={(kind) => change({ on: kind, fault: FAULTS[kind][0], where: {} })}
        options={FAULT_KINDS.map((kind) => ({ value: kind, label: label(kind) }))}
      />
      <SelectField
        label="Fault"
        params={["fault"]}
        value={fault}
        set={(name) => change({ fault: name })}
        options={FAULTS[on].map((name) => [name, label(name)] as const)}
      />
      {fault === "delay" && (
        <TextField
          label="Delay in milliseconds"
          params={["delay_ms"]}
          value={draft.delay_ms}
          set={(delay_ms) => change({ delay_ms })}
          inputMode="numeric"
        />
      )}
      <TextField
        label="Times"
        params={["times"]}
        value={draft.times}
        set={(times) => change({ times })}
        inputMode="numeric"
        hint="How often it happens: 1 to 1000."
      />
      {CONDITIONS[on].map(([name, title, values]) => {
        const shared = {
          label: title,
          params: [`where.${name}`],
          value: where[name] ?? "",
          set: (value: string) => change({ where: { ...where, [name]: value } }),
          optional: true,
        };
        return values
          ? <SelectField key={name} {...shared} options={options(values)} />
          : <TextField key={name} {...shared} placeholder={PLACEHOLDERS[name] ?? ""} mono />;
      })}
    </>
  );
}
