/** The form that declares a fault. */

import type { CreateFaultInput } from "../../../packages/client/mod.ts";
import {
  EVENT_TYPES,
  FAULT_KINDS,
  FAULTS,
  METHOD_KINDS,
  PROVIDER_OPERATIONS,
  REQUEST_METHODS,
} from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { useDraft } from "../data/draft.ts";
import { Choices, optionsOf, SelectField, TextField } from "../parts/fields.tsx";
import { showFlash } from "../data/flash.ts";
import { FormPage } from "../parts/form.tsx";
import { go } from "../data/route.ts";
import { label } from "../data/words.ts";

type Kind = CreateFaultInput["on"];

/** The values of a new fault. An empty condition is left out. */
const FIRST = {
  on: "request" as Kind,
  fault: FAULTS.request[0] as string,
  times: "1",
  delay_ms: "1000",
  where: {} as Readonly<Record<string, string>>,
};

/** A condition: its name, its label, and the values of a list or the text of an empty field. */
type Condition = readonly [name: string, label: string, values?: readonly string[] | string];

const CONDITIONS: Readonly<Record<Kind, readonly Condition[]>> = {
  request: [
    ["method", "Method", REQUEST_METHODS],
    ["path", "Path", "/v1/payments/{id}/refund"],
    ["idempotency_key", "Idempotency key"],
  ],
  delivery: [["endpoint_id", "Endpoint", "whe_…"], ["event_type", "Event type", EVENT_TYPES]],
  provider: [
    ["method_kind", "Payment method", METHOD_KINDS],
    ["operation", "Operation", PROVIDER_OPERATIONS],
  ],
};

function faultBody({ on, fault, times, delay_ms, where }: typeof FIRST): CreateFaultInput {
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

export function NewFaultPage() {
  const { draft, change, field, kept } = useDraft(FIRST, "fault");
  const { on, fault, where } = draft;
  return (
    <FormPage
      section="faults"
      kept={kept}
      build={(options) => call("sandbox", "createFault", faultBody(draft), options)}
      done={() => {
        go(["faults"]);
        showFlash("Fault declared.");
      }}
      act="Declare fault"
    >
      <Choices
        label="Fails"
        name="on"
        value={on}
        set={(kind) => change({ on: kind, fault: FAULTS[kind][0], where: {} })}
        options={FAULT_KINDS.map((kind) => [kind, label(kind)])}
      />
      <SelectField {...field("fault", "Fault")} options={optionsOf(FAULTS[on], label)} />
      {fault === "delay" && (
        <TextField {...field("delay_ms", "Delay in milliseconds")} inputMode="numeric" />
      )}
      <TextField
        {...field("times", "Times")}
        inputMode="numeric"
        hint="How often it happens: 1 to 1000."
      />
      {CONDITIONS[on].map(([name, title, values = ""]) => {
        const shared = {
          label: title,
          params: [`where.${name}`],
          value: where[name] ?? "",
          set: (value: string) => change({ where: { ...where, [name]: value } }),
          optional: true,
        };
        return typeof values === "string"
          ? <TextField key={name} {...shared} placeholder={values} mono />
          : <SelectField key={name} {...shared} options={[["", "Any"], ...optionsOf(values)]} />;
      })}
    </FormPage>
  );
}
