/** The frame of the console: the navigation, the current page, and the panel of API calls. */

import type { FunctionComponent } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { SCOPES } from "../../shared/core/vocabulary.ts";
import { ApiKeyPage } from "./pages/api_keys.tsx";
import { BalancePage } from "./pages/balance_page.tsx";
import { call_log, clearLog } from "./data/calls.ts";
import { CallPanel } from "./parts/call_panel.tsx";
import { ClockButton } from "./parts/clock.tsx";
import { CHECKOUTS } from "./pages/checkout_list.tsx";
import { CheckoutPage } from "./pages/checkout_page.tsx";
import { CommandKey } from "./parts/command_dialog.tsx";
import { ComparePage } from "./pages/compare_page.tsx";
import { Connect } from "./pages/connect.tsx";
import { CreateCheckoutPage } from "./pages/create_checkout_page.tsx";
import { CreatePage } from "./pages/create_page.tsx";
import { CreateTransferPage } from "./pages/create_transfer_page.tsx";
import { DialogButton } from "./parts/dialog.tsx";
import { NewEndpointPage } from "./forms/endpoint_form.tsx";
import { drafts } from "./data/draft.ts";
import { EndpointPage } from "./pages/endpoint_page.tsx";
import { DeliveryPage, DisputePage, EntryPage, RefundPage } from "./pages/owner_page.tsx";
import { EventPage } from "./pages/event_page.tsx";
import { NewFaultPage } from "./forms/fault_form.tsx";
import { FaultPage } from "./pages/fault_table.tsx";
import { clearFlashOfOtherPage } from "./data/flash.ts";
import { Flash } from "./parts/flash.tsx";
import { keepFocus } from "./data/focus.ts";
import { HomePage } from "./pages/home_page.tsx";
import { IdempotencyKeyPage } from "./pages/idempotency_key_page.tsx";
import { type List, ListPage } from "./parts/list_page.tsx";
import { INSTRUMENTS } from "./pages/instrument_list.tsx";
import { InstrumentPage } from "./pages/instrument_page.tsx";
import { Logo } from "./parts/page_parts.tsx";
import { DISPUTES, LEDGER, PAYMENTS, REFUNDS, TRANSFERS } from "./pages/money_lists.tsx";
import { Empty } from "./parts/notice.tsx";
import { ENDPOINTS, EVENTS, FAULTS, KEYS, REQUESTS } from "./pages/other_lists.tsx";
import { may, refusalOfCall } from "./data/permissions.ts";
import { PaymentPage } from "./pages/payment_page.tsx";
import { ReferenceLink } from "./parts/reference.tsx";
import { RequestPage } from "./pages/request_page.tsx";
import { ResetDialog } from "./forms/reset_dialog.tsx";
import { forgetLists, go, href, place, type Route, route } from "./data/route.ts";
import { restoreScroll } from "./data/scroll.ts";
import { SandboxPage } from "./pages/sandbox_page.tsx";
import { SandboxesDialog, TranscriptButton } from "./forms/sandboxes_dialog.tsx";
import { SearchField } from "./parts/search_field.tsx";
import { SearchPage } from "./pages/search_page.tsx";
import {
  endSession,
  is_stored,
  leaveSandbox,
  maskedKey,
  sandboxId,
  session,
} from "./data/session.ts";
import { longer, Time } from "./parts/text.tsx";
import { TIME_ZONE } from "./data/times.ts";
import { pageName, sectionName } from "./data/titles.ts";
import { TransferPage } from "./pages/transfer_page.tsx";

/** The sections, in the order of the navigation. */
const SECTIONS =
  ("home payments checkouts instruments refunds disputes transfers balance events webhooks requests faults " +
    "keys").split(" ");

/** The console: the page for the key, or the frame if there is a session. */
export function App() {
  if (session.value === null) return <Connect />;
  // Another sandbox gets another frame, which shows nothing of the one before.
  return <Frame key={sandboxId()} />;
}

function Frame() {
  const section = route.value.steps[0] ?? "home";
  // The ledger entries are the other half of the balance.
  const current = section === "ledger" ? "balance" : section;
  const here = place(route.value);
  // Each page of a list begins at its top.
  const cursor = route.value.query["starting_after"];
  const frame = useRef<HTMLDivElement>(null);
  const main = useRef<HTMLElement>(null);
  const sections = useRef<HTMLElement>(null);
  const { api_key, scopes, disposable } = session.value!;

  // This effect must run before the next one, which focuses the first heading.
  useLayoutEffect(() => keepFocus(frame.current!), []);
  // A phone shows only some of the sections at a time.
  useLayoutEffect(() => showCurrent(sections.current!), [section]);
  // Another sandbox has other lists.
  useEffect(() => forgetLists, []);
  // A layout effect runs before the browser paints. Later, it could undo a Tab of the user.
  useLayoutEffect(() => {
    // Screen readers and the keyboard continue at the heading of the new page.
    main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    scrollTo(0, 0);
    clearFlashOfOtherPage();
  }, [here, cursor]);
  // A page that the user comes back to continues where it was left.
  useLayoutEffect(restoreScroll, [route.value]);

  const title = `${pageName(route.value)} · ${disposable?.sandbox.name ?? "Sandbox"}`;
  useLayoutEffect(() => {
    document.title = title;
  }, [title]);

  const leave = () => {
    clearLog();
    drafts.clear();
    endSession();
  };
  const back = () => {
    leaveSandbox();
    go(["payments"]);
  };

  return (
    <div ref={frame} class={call_log.value.length > 0 ? "frame with-calls" : "frame"}>
      <a class="skip" href="#main" onClick={(event) => focusMain(event, main.current)}>
        Skip to the content
      </a>
      <header class="side">
        <a class="home" href={href([])}>
          <Logo />
        </a>
        <SearchField />
        <nav ref={sections} aria-label="Sections">
          {SECTIONS.filter(isReadable).map((name) => (
            <a
              key={name}
              href={href(name === "home" ? [] : [name])}
              aria-current={name === current ? "page" : undefined}
            >
              {sectionName(name)}
            </a>
          ))}
          <ReferenceLink section={section} />
        </nav>
        <div class="account">
          <p class="key" title="The key in use">
            <code>{maskedKey(api_key)}</code>
          </p>
          {scopes && (
            <p class="quiet wide-only" title={scopes.join(", ")}>
              {scopes.length} of {SCOPES.length} scopes
            </p>
          )}
          {disposable
            ? (
              <>
                <p class="disposable">
                  <strong>{disposable.sandbox.name ?? "Disposable sandbox"}</strong>
                  <span class="quiet">
                    Ends <Time at={disposable.sandbox.expires_at} />
                  </span>
                </p>
                {disposable.sandbox.seed !== null && may("sandbox.transcript") && (
                  <TranscriptButton seed={disposable.sandbox.seed} />
                )}
                <button type="button" class="plain" onClick={back}>
                  {longer("Back", "to the first sandbox")}
                </button>
              </>
            )
            : (
              <DialogButton text="Sandboxes…" needs="sandboxes.list" class="plain">
                {(close) => <SandboxesDialog close={close} />}
              </DialogButton>
            )}
          <ClockButton />
          <DialogButton text={longer("Reset", "sandbox")} needs="sandbox.reset" class="plain">
            {(close) => <ResetDialog close={close} />}
          </DialogButton>
          <button type="button" class="plain" onClick={leave}>{longer("Forget", "key")}</button>
          <p class="zone wide-only">Times in {TIME_ZONE}</p>
          <label
            class="check keep wide-only"
            title="The session storage of the browser holds the key until you close the tab or forget the key"
          >
            <input
              type="checkbox"
              checked={is_stored.value}
              onChange={(event) => is_stored.value = event.currentTarget.checked}
            />
            Keep key on reload
          </label>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Flash />
        <Page route={route.value} />
      </main>
      <CallPanel />
      <CommandKey />
    </div>
  );
}

// Each list has items of its own type.
// deno-lint-ignore no-explicit-any
const LISTS: readonly List<any>[] = [
  PAYMENTS,
  CHECKOUTS,
  INSTRUMENTS,
  REFUNDS,
  DISPUTES,
  TRANSFERS,
  LEDGER,
  EVENTS,
  ENDPOINTS,
  REQUESTS,
  FAULTS,
  KEYS,
];

/** Whether the key may read what a section shows. */
function isReadable(section: string): boolean {
  if (section === "balance") return may("balance.retrieve");
  const list = LISTS.find((list) => list.section === section);
  return !list || !refusalOfCall(list.read({}));
}

const NEW_PAGES: Readonly<Record<string, FunctionComponent>> = {
  payments: CreatePage,
  checkouts: CreateCheckoutPage,
  transfers: CreateTransferPage,
  webhooks: NewEndpointPage,
  faults: NewFaultPage,
};

const ITEM_PAGES: Readonly<
  Record<string, FunctionComponent<{ id: string; query: Route["query"] }>>
> = {
  payments: PaymentPage,
  checkouts: CheckoutPage,
  instruments: InstrumentPage,
  transfers: TransferPage,
  events: EventPage,
  webhooks: EndpointPage,
  requests: RequestPage,
  ledger: EntryPage,
  keys: ApiKeyPage,
  faults: FaultPage,
  sandboxes: SandboxPage,
  idempotency_keys: IdempotencyKeyPage,
  refunds: RefundPage,
  disputes: DisputePage,
  deliveries: DeliveryPage,
};

function Page({ route: { steps, query } }: { route: Route }) {
  const [section = "home", id] = steps;
  if (section === "home") return <HomePage query={query} />;
  if (section === "search") return <SearchPage query={query} />;
  if (section === "balance") return <BalancePage />;
  if (section === "compare") return <ComparePage query={query} />;
  const list = LISTS.find((list) => list.section === section);
  if (id === undefined && list) return <ListPage key={section} list={list} query={query} />;
  const NewPage = NEW_PAGES[section];
  if (id === "new" && NewPage) return <NewPage key={query["instrument"]} />;
  const ItemPage = ITEM_PAGES[section];
  if (ItemPage) return <ItemPage key={`${section} ${id}`} id={id ?? ""} query={query} />;
  return (
    <>
      <h1 tabIndex={-1}>Page not found</h1>
      <Empty title="No such page">
        <a href={href([])}>Go to the home page</a>
      </Empty>
    </>
  );
}

/** Focuses the content. The default of the link would change the hash, which is the route. */
function focusMain(event: Event, main: HTMLElement | null) {
  event.preventDefault();
  main?.focus();
}

/** Scrolls a row of links sideways to the one of the current page, and nothing else. */
function showCurrent(links: HTMLElement): void {
  const current = links.querySelector("[aria-current]");
  if (!current) return;
  const [all, one] = [links.getBoundingClientRect(), current.getBoundingClientRect()];
  links.scrollLeft += one.x + one.width / 2 - (all.x + all.width / 2);
}
