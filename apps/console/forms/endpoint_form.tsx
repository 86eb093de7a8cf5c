/** The fields of a webhook endpoint, for a new and for an existing one. */

import type {
  CreateWebhookEndpointInput,
  EndpointDelivery,
  EventType,
  Subscription,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import { EVENT_PATTERNS, EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { useContext } from "preact/hooks";
import { metadataOf } from "./create_body.ts";
import { concerns } from "../data/failure.ts";
import { Choices, FieldFault, FormFailure, TextField } from "../parts/fields.tsx";
import { MetadataFields, type MetadataRows } from "./metadata_fields.tsx";

/** The values of the fields. */
interface EndpointDraft {
  delivery: EndpointDelivery;
  url: string;
  description: string;
  /** All event types, or those in `events`. */
  wants: "all" | "some";
  events: readonly string[];
  metadata: MetadataRows;
}

/** The checked event types when the user begins to choose. */
const FIRST_CHOICE = ["payment.completed"] satisfies EventType[];

/** The patterns and types to choose from. The pattern of all events is a choice of its own. */
const CHOICES = [...EVENT_PATTERNS.filter((pattern) => pattern !== "*"), ...EVENT_TYPES];

/** Returns the values of an existing endpoint, or of a new one. */
export function draftOf(endpoint?: WebhookEndpoint): EndpointDraft {
  if (!endpoint) {
    return {
      delivery: "url",
      url: "",
      description: "",
      wants: "all",
      events: FIRST_CHOICE,
      metadata: [],
    };
  }
  const wants_all = endpoint.events.includes("*");
  return {
    delivery: endpoint.delivery ?? "url",
    url: endpoint.url ?? "",
    description: endpoint.description ?? "",
    wants: wants_all ? "all" : "some",
    events: wants_all ? FIRST_CHOICE : endpoint.events,
    metadata: Object.entries(endpoint.metadata),
  };
}

/**
 * Returns the body of the request.
 * @throws {FieldError} if a name of metadata occurs twice
 */
export function endpointBody(draft: EndpointDraft): CreateWebhookEndpointInput {
  return {
    ...(draft.delivery === "inbox"
      ? { delivery: "inbox" }
      : { delivery: "url", url: draft.url.trim() }),
    events: (draft.wants === "all" ? ["*"] : draft.events) as Subscription[],
    ...(draft.description !== "" && { description: draft.description }),
    ...metadataOf(draft),
  };
}

/** The fields, inside a form. */
export function EndpointFields(props: {
  draft: EndpointDraft;
  change: (changed: Partial<EndpointDraft>) => void;
}) {
  const { draft, change } = props;
  return (
    <>
      <Choices
        label="Delivery"
        name="delivery"
        class="segments"
        value={draft.delivery}
        set={(delivery) => change({ delivery })}
        options={[
          { value: "url", label: "To your server" },
          { value: "inbox", label: "Inbox" },
        ]}
      />
      {draft.delivery === "url"
        ? (
          <TextField
            label="URL"
            params={["url"]}
            value={draft.url}
            set={(url) => change({ url })}
            inputMode="url"
            placeholder="https://example.com/webhooks"
            hint="An https URL of a public host. The local start also allows http and private hosts."
            mono
          />
        )
        : <p class="quiet">Your program reads the events from the API. It needs no URL.</p>}
      <TextField
        label="Description"
        params={["description"]}
        value={draft.description}
        set={(description) => change({ description })}
        optional
      />
      <Choices
        label="Events"
        name="wants"
        class="segments"
        value={draft.wants}
        set={(wants) => change({ wants })}
        options={[
          { value: "all", label: "All events" },
          { value: "some", label: "Chosen events" },
        ]}
      />
      {draft.wants === "some" && <EventBoxes {...props} />}
      <MetadataFields rows={draft.metadata} set={(metadata) => change({ metadata })} />
    </>
  );
}

function EventBoxes({ draft, change }: {
  draft: EndpointDraft;
  change: (changed: Partial<EndpointDraft>) => void;
}) {
  const failure = useContext(FormFailure);
  const fault = concerns(failure, ["events"]) ? failure : null;
  const toggle = (name: string, is_on: boolean) =>
    change({
      events: is_on ? [...draft.events, name] : draft.events.filter((other) => other !== name),
    });
  return (
    <fieldset class="boxes">
      <legend>Event types and patterns</legend>
      {CHOICES.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={draft.events.includes(name)}
            aria-invalid={fault ? "true" : undefined}
            onChange={(event) => toggle(name, event.currentTarget.checked)}
          />
          <code>{name}</code>
        </label>
      ))}
      {fault && <FieldFault id="events-error" failure={fault} />}
    </fieldset>
  );
}
