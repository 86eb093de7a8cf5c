/**
 * Builds the dependencies of the functions from settings. Each isolate has one set, which all its
 * requests share.
 */

import { type Clock, systemClock } from "../core/clock.ts";
import { isLoopback, ownHosts } from "../core/loopback.ts";
import { type RandomSource, systemRandom } from "../core/ids.ts";
import { type ApiKeys, createApiKeys } from "../domain/api_keys.ts";
import { ChangeWriter } from "../domain/changes/change_writer.ts";
import { createConnectors } from "../connectors/connectors.ts";
import { CallRunner } from "../domain/operations/call_runner.ts";
import { ProviderAccounts } from "../domain/operations/provider_accounts.ts";
import { ProviderWorker } from "../domain/operations/provider_worker.ts";
import { type Challenges, createChallenges } from "../domain/sandbox/challenges.ts";
import { sandboxOrigins } from "../domain/sandbox/sandbox_origins.ts";
import { createSandboxProvider } from "../domain/sandbox/provider_fault.ts";
import {
  createSandboxOperations,
  type SandboxOperations,
} from "../domain/sandbox/sandbox_operations.ts";
import { Operations } from "../domain/operations/operations.ts";
import { createSandboxes, type Sandboxes } from "../domain/sandboxes.ts";
import { createSandboxClock, type SandboxClock } from "../domain/sandbox_clock.ts";
import { createWebhooks, type Webhooks } from "../domain/webhooks/webhooks.ts";
import { createApiKeyStore } from "../store/api_key_store.ts";
import { createChainStore } from "../store/chain_store.ts";
import { createClockStore } from "../store/clock_store.ts";
import { openDatabase } from "../store/database.ts";
import { EntryCalls } from "../store/entry_calls.ts";
import { DELAY_LIMITS, LIVE_LIMITS, WaitingRequests } from "../store/waiting_requests.ts";
import { KnownSettings } from "../store/known_settings.ts";
import { createFaultStore, type FaultStore } from "../store/fault_store.ts";
import { createProviderStore, type ProviderStore } from "../store/provider_store.ts";
import { createSeededStore, type SeededStore } from "../store/seeded_store.ts";
import type { RateLimits } from "../store/outcome.ts";
import { createSandboxStore } from "../store/sandbox_store.ts";
import { noteIn, RequestNotes } from "../store/request_notes.ts";
import { createInboxStore } from "../store/inbox_store.ts";
import { createStore, type Store } from "../store/store.ts";
import { createWebhookStore, type WebhookStore } from "../store/webhook_store.ts";
import { inBackground } from "./background.ts";
import { readSettings } from "./read_settings.ts";
import { attemptLine, failedTurn, type LogLine, lostNotes, writeLogLine } from "./request_log.ts";
import { sandboxWorld } from "./sandbox_world.ts";
import type { Settings } from "./settings.ts";
import type { World } from "./world.ts";

/** The dependencies of both functions. */
export interface Dependencies {
  store: Store;
  webhook_store: WebhookStore;
  operations: Operations;
  sandbox: SandboxOperations;
  /** For the page where payers answer 3-D Secure in a sandbox. */
  challenges: Challenges;
  api_keys: ApiKeys;
  sandboxes: Sandboxes;
  /** The clocks of sandboxes. */
  sandbox_clock: SandboxClock;
  /** The declared faults of sandboxes. */
  faults: FaultStore;
  /** The settings of sandboxes, by key. */
  known_settings: KnownSettings;
  seeded_store: SeededStore;
  /** The requests that wait for the end of a delay. */
  delays: WaitingRequests;
  /** Null: there are no limits. */
  rate_limits: RateLimits | null;
  provider_store: ProviderStore;
  provider_accounts: ProviderAccounts;
  provider_worker: ProviderWorker;
  /** Null without a master secret: then the operations on endpoints answer 503. */
  webhooks: Webhooks | null;
  /** Bearer token of the internal routes; null: they refuse every request. */
  relay_token: string | null;
  /** Base URL of both functions, without a slash at the end. */
  base_url: string;
  /** URL of the console, or null if there is none. */
  console_url: string | null;
  clock: Clock;
  random: RandomSource;
  /** Origins that may call from a browser: exact, or `http://localhost:*` for any port. */
  allowed_origins: readonly string[];
  log: (line: LogLine) => void;
  /** Notes that are written behind the answers. */
  notes: RequestNotes;
  /** The worlds of requests. */
  world: World;
}

/** Seconds without a read after which the connection of the read lane closes. */
const READS_IDLE_S = 20;

/** Dependencies with open connections, which `close` closes. */
export type OpenDependencies = Dependencies & { close(): Promise<void> };

/** Builds the dependencies from settings. */
export function createDependencies(settings: Settings): OpenDependencies {
  const { max_connections, prepare, unavailable_after_ms, on_statement, database_authority } =
    settings;
  const address = {
    url: settings.database_url,
    ...(database_authority !== undefined && { authority: database_authority }),
    ...(prepare !== undefined && { prepare }),
    ...(unavailable_after_ms !== undefined && { unavailable_after_ms }),
    ...(on_statement && { on_statement }),
  };
  const database = openDatabase({
    ...address,
    ...(max_connections !== undefined && { max_connections }),
  });
  const reads = openDatabase({ ...address, max_connections: 1, idle_s: READS_IDLE_S });
  const clock = settings.clock ?? systemClock;
  const random = settings.random ?? systemRandom;
  const origins = sandboxOrigins({ clock, random });
  const log = settings.log ?? writeLogLine;
  const notifyDispatcher = () => {
    if (webhooks) inBackground(webhooks.notify());
  };
  const calls = new EntryCalls(database);
  const store = createStore(database, reads, calls, {
    on_due: notifyDispatcher,
    on_later: (delay_ms) => provider_worker.notifyAt(clock() + delay_ms),
  });
  const faults = createFaultStore(calls);
  const changes = new ChangeWriter(store);
  const webhook_store = createWebhookStore(database, calls, notifyDispatcher);
  const { webhook_master_secret: master_secret, webhook_sender, webhook_lease_ms } = settings;
  const webhooks = master_secret === undefined ? null : createWebhooks({
    store,
    webhook_store,
    inbox_store: createInboxStore(database, calls, notifyDispatcher),
    settings: {
      master_secret,
      allow_private: settings.allow_private_webhooks ?? false,
      own_hosts: ownHosts(new URL(settings.base_url)),
    },
    clock,
    random,
    origins,
    on_error: (error) => log(failedTurn("relay", clock(), error)),
    on_attempt: (delivery, { record }) => log(attemptLine(delivery, record)),
    ...(webhook_sender && { sender: webhook_sender }),
    ...(webhook_lease_ms !== undefined && { lease_ms: webhook_lease_ms }),
  });
  const provider_store = createProviderStore(database, notifyDispatcher);
  const provider_accounts = new ProviderAccounts(
    createConnectors(createChainStore(database)),
    settings.provider_secret ?? (() => undefined),
    isLoopback(new URL(settings.base_url).hostname),
  );
  const { provider_deadline_ms: deadline_ms } = settings;
  const runner = new CallRunner({
    store: provider_store,
    accounts: provider_accounts,
    origins,
    ...(deadline_ms !== undefined && { deadline_ms }),
    on_facts: () => inBackground(provider_worker.notify()),
    on_retry: (at_ms) => provider_worker.notifyAt(at_ms),
  });
  const provider_worker = new ProviderWorker({
    store: provider_store,
    accounts: provider_accounts,
    runner,
    clock,
    on_error: (error) => log(failedTurn("provider worker", clock(), error)),
  });
  // Apart from the other requests that wait, so that no sandbox holds up money.
  const live_waits = new WaitingRequests(calls.tenants, LIVE_LIMITS);
  const { base_url, console_url = null } = settings;
  const urls = { base_url, console_url };
  const operations = new Operations({
    store,
    changes,
    runner,
    at_once: createSandboxProvider(faults, urls),
    waits: live_waits,
  });
  const notes = new RequestNotes(
    noteIn(database),
    (count) => log(lostNotes(clock(), count)),
    inBackground,
  );
  const known_settings = new KnownSettings();
  const sandbox_clock = createSandboxClock({
    store: createClockStore(calls, known_settings),
    sends: webhooks !== null,
    work: () => Promise.all([provider_worker.notify(), webhooks?.dispatcher.notify()]),
    ...(settings.advance_ms !== undefined && { advance_ms: settings.advance_ms }),
  });
  return {
    store,
    webhook_store,
    provider_store,
    provider_accounts,
    provider_worker,
    operations,
    sandbox: createSandboxOperations({ store, changes, urls }),
    challenges: createChallenges({ store: provider_store, origins }),
    faults,
    api_keys: createApiKeys(createApiKeyStore(calls)),
    sandboxes: createSandboxes(createSandboxStore(calls)),
    webhooks,
    known_settings,
    sandbox_clock,
    seeded_store: createSeededStore(calls),
    delays: new WaitingRequests(calls.tenants, DELAY_LIMITS),
    relay_token: settings.relay_token ?? null,
    rate_limits: rateLimits(settings),
    base_url,
    console_url,
    clock,
    random,
    allowed_origins: settings.allowed_origins ?? [],
    log,
    notes,
    world: sandboxWorld({ random, notes: settings.request_log ? notes : null }),
    async close() {
      await Promise.all([webhooks?.close(), provider_worker.stop(), notes.close()]);
      await Promise.all([database.close(), reads.close()]);
    },
  };
}

/** Builds the dependencies from environment variables. Throws the errors of `readSettings`. */
export function openDependencies(env: (name: string) => string | undefined): OpenDependencies {
  return createDependencies({ ...readSettings(env), provider_secret: env });
}

function rateLimits(settings: Settings): RateLimits | null {
  const { rate_limit: key = 0, account_rate_limit: account = 0 } = settings;
  return key === 0 && account === 0 ? null : { key, account };
}
