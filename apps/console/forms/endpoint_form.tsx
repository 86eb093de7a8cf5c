/**
 * The forms of a webhook endpoint: the page for a new one, and the dialogs that edit one and rotate
 * its secret.
 */

import type {
  CreateWebhookEndpointInput,
  EndpointDelivery,
  Subscription,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import { EVENT_PATTERNS, EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { metadataOf } from "./create_body.ts";
import { type Change, fieldsOf, useDraft } from "../data/draft.ts";
import { Boxes, Choices, OverlapField, TextField } from "../parts/fields.tsx";
import { showFlash } from "../data/flash.ts";
import { FormDialog, FormPage } from "../parts/form.tsx";
import { MetadataFields, type MetadataRows } from "./metadata_fields.tsx";
import { go } from "../data/route.ts";
import { new_secret } from "../parts/secret_card.tsx";

/** A new endpoint. It wants all events, or the types and patterns in `events`. */
const FIRST = {
  delivery: "url" as EndpointDelivery,
  url: "",
  description: "",
  wants: "all" as "all" | "some",
  events: ["payment.completed"] as readonly Subscription[],
  metadata: [] as MetadataRows,
};
type EndpointDraft = typeof FIRST;

/** The patterns and types to choose from. The pattern of all events is a choice of its own. */
const CHOICES: readonly Subscription[] = [
  ...EVENT_PATTERNS.filter((pattern) => pattern !== "*"),
  ...EVENT_TYPES,
];

function draftOf(endpoint: WebhookEndpoint): EndpointDraft {
  const wants_all = endpoint.events.includes("*");
  return {
    delivery: endpoint.delivery ?? "url",
    url: endpoint.url ?? "",
    description: endpoint.description ?? "",
    wants: wants_all ? "all" : "some",
    events: wants_all ? FIRST.events : endpoint.events,
    metadata: Object.entries(endpoint.metadata),
  };
}

/**
 * Returns the body of the request.
 * @throws {FieldError} if a name of metadata occurs twice
 */
function endpointBody(draft: EndpointDraft): CreateWebhookEndpointInput {
  return {
    ...(draft.delivery === "inbox"
      ? { delivery: "inbox" }
      : { delivery: "url", url: draft.url.trim() }),
    events: draft.wants === "all" ? ["*"] : [...draft.events],
    ...(draft.description !== "" && { description: draft.description }),
    ...metadataOf(draft),
  };
}

function tellSecret(of: string, secret: string): void {
  const about = "Store it in the settings of your receiver.";
  new_secret.value = { of, name: "Signing secret", about, secret };
}

export function NewEndpointPage() {
  const { draft, change, kept } = useDraft(FIRST, "endpoint");
  return (
    <FormPage
      section="webhooks"
      kept={kept}
      label="Add an endpoint"
      build={(options) => call("webhookEndpoints", "create", endpointBody(draft), options)}
      done={({ id, secret }) => {
        tellSecret(id, secret);
        go(["webhooks", id]);
        showFlash("Endpoint added.");
      }}
      act="Add endpoint"
    >
      <EndpointFields draft={draft} change={change} />
    </FormPage>
  );
}

function EndpointFields(props: { draft: EndpointDraft; change: Change<EndpointDraft> }) {
  const { draft, change } = props;
  const field = fieldsOf(draft, change);
  return (
    <>
      <Choices
        label="Delivery"
        name="delivery"
        value={draft.delivery}
        set={(delivery) => change({ delivery })}
        options={[
          ["url", "To your server"],
          ["inbox", "Inbox"],
        ]}
      />
      {draft.delivery === "url"
        ? (
          <TextField
            {...field("url", "URL")}
            inputMode="url"
            placeholder="https://example.com/webhooks"
            hint="An https URL of a public host. The local start also allows http and private hosts."
            mono
          />
        )
        : <p class="quiet">Your program reads the events from the API. It needs no URL.</p>}
      <TextField {...field("description", "Description")} optional />
      <Choices
        label="Events"
        name="wants"
        value={draft.wants}
        set={(wants) => change({ wants })}
        options={[
          ["all", "All events"],
          ["some", "Chosen events"],
        ]}
      />
      {draft.wants === "some" && (
        <Boxes
          label="Event types and patterns"
          param="events"
          names={CHOICES}
          chosen={draft.events}
          set={(events) => change({ events })}
        />
      )}
      <MetadataFields draft={draft} change={change} />
    </>
  );
}

interface EndpointDialog {
  endpoint: WebhookEndpoint;
  close: () => void;
}

export function EditDialog({ endpoint, close }: EndpointDialog) {
  const { draft, change, kept } = useDraft(() => draftOf(endpoint), endpoint.id);
  return (
    <FormDialog
      title="Edit the endpoint"
      close={close}
      kept={kept}
      build={(options) => {
        const body = {
          // An update without metadata keeps the old one.
          metadata: {},
          ...endpointBody(draft),
          description: draft.description || null,
        };
        return call("webhookEndpoints", "update", endpoint.id, body, options);
      }}
      done="Endpoint changed."
      act="Save"
    >
      <EndpointFields draft={draft} change={change} />
    </FormDialog>
  );
}

export function RotateDialog({ endpoint, close }: EndpointDialog) {
  const { draft, field } = useDraft({ expires_in: "0" });
  return (
    <FormDialog
      title="Rotate the signing secret"
      close={close}
      build={(options) => {
        const body = { expires_in: Number(draft.expires_in) };
        return call("webhookEndpoints", "rotateSecret", endpoint.id, body, options);
      }}
      done={({ id, secret }) => {
        tellSecret(id, secret);
        return "Signing secret rotated.";
      }}
      act="Rotate secret"
    >
      <OverlapField
        {...field("expires_in", "Older secrets expire")}
        hint="Until then each delivery is signed with them too. At most 5 secrets are valid."
      />
    </FormDialog>
  );
}
