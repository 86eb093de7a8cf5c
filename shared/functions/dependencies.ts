/**
 * Builds the dependencies of the functions from settings. Each isolate has one set, which all its
 * requests share.
 */

import { systemClock } from "../core/clock.ts";
import { isLoopback, ownHosts } from "../core/loopback.ts";
import { systemRandom } from "../core/ids.ts";
import { createApiKeys } from "../domain/keys/api_keys.ts";
import { Origins } from "../domain/changes/origin.ts";
import { ChangeWriter } from "../domain/changes/change_writer.ts";
import { BankStore } from "../store/bank_store.ts";
import { ChainStore } from "../store/chain_store.ts";
import type { BridgeDependencies } from "./bridge_routes.ts";
import { createConnectors } from "./connectors.ts";
import { OperationRunner } from "../domain/operations/operation_runner.ts";
import { ProviderAccounts } from "../domain/operations/provider_accounts.ts";
import { ProviderWorker } from "../domain/operations/provider_worker.ts";
import { createChallenges } from "../sandbox/challenges.ts";
import { sandboxOrigins } from "../sandbox/sandbox_origins.ts";
import { createSandboxProvider } from "../sandbox/sandbox_provider.ts";
import { createSandboxMoves } from "../sandbox/sandbox_moves.ts";
import { Operations } from "../domain/operations/operations.ts";
import { Sandboxes } from "../sandbox/disposable_sandboxes.ts";
import { SandboxChanges } from "../sandbox/sandbox_changes.ts";
import { SandboxClock } from "../sandbox/sandbox_clock.ts";
import { createWebhooks } from "../domain/webhooks/webhooks.ts";
import { CheckoutStore } from "../store/checkout_store.ts";
import { ApiKeyStore } from "../store/api_key_store.ts";
import { openDatabase } from "../store/database.ts";
import { CostlyWork } from "../jobs/costly_work.ts";
import { createPlaces, LARGE_BODIES } from "../jobs/places.ts";
import { EntryCalls } from "../store/entry_calls.ts";
import { KnownSettings } from "../sandbox/known_settings.ts";
import { FaultStore } from "../sandbox/fault_store.ts";
import { ProviderStore } from "../store/provider_store.ts";
import { SeededStore } from "../sandbox/seeded_store.ts";
import type { RateLimits } from "../store/outcome.ts";
import { RequestLog, writeTo } from "../store/request_log.ts";
import { InboxStore } from "../store/inbox_store.ts";
import { Store } from "../store/store.ts";
import { WebhookStore } from "../store/webhook_store.ts";
import { inBackground } from "../http/background.ts";
import { readSettings } from "./read_settings.ts";
import { attemptLine, failedPoll, lostEntries, writeLogLine } from "../http/log_line.ts";
import type { Settings } from "./settings.ts";
import type { Sandbox, SandboxDependencies } from "../sandbox/sandbox.ts";

/** Seconds without a read after which the connection of the read queue closes. */
const READS_IDLE_S = 20;

/** Dependencies with open connections, which `close` closes. */
export type OpenDependencies =
  & SandboxDependencies
  & BridgeDependencies
  & { close(): Promise<void> };

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
  const { base_url, checkout_url = null, docs_url = null } = settings;
  const storage_gb = settings.storage_gb || null;
  const origins = new Origins({ clock, random, docs_url }, sandboxOrigins(clock, random));
  const log = settings.log ?? writeLogLine;
  const notifyDispatcher = () => {
    if (webhooks) inBackground(webhooks.notify());
  };
  const places = createPlaces();
  const calls = new EntryCalls(database);
  const store = new Store(database, reads, calls, {
    on_due: notifyDispatcher,
    on_later: (delay_ms) => provider_worker.notifyAt(clock() + delay_ms),
  });
  const faults = new FaultStore(calls);
  const changes = new ChangeWriter(store);
  const webhook_store = new WebhookStore(database, calls, notifyDispatcher);
  const { webhook_master_secret: master_secret, webhook_sender, webhook_lease_ms } = settings;
  const webhooks = master_secret === undefined ? null : createWebhooks({
    store,
    webhook_store,
    inbox_store: new InboxStore(database, calls, notifyDispatcher),
    settings: {
      master_secret,
      allow_private: settings.allow_private_webhooks ?? false,
      own_hosts: ownHosts(new URL(settings.base_url)),
    },
    clock,
    random,
    origins,
    hold: ({ key_hash }, job) => places.long_waits.run([calls.tenants.nameOf(key_hash)], job),
    on_error: (error) => log(failedPoll("dispatcher", clock(), error)),
    on_attempt: (delivery, { record }) => log(attemptLine(delivery, record)),
    ...(webhook_sender && { sender: webhook_sender }),
    ...(webhook_lease_ms !== undefined && { lease_ms: webhook_lease_ms }),
  });
  const provider_store = new ProviderStore(database, notifyDispatcher);
  const bank_store = new BankStore(database);
  const vault = settings.vault ?? null;
  const provider_accounts = new ProviderAccounts(
    createConnectors(new ChainStore(database), bank_store),
    settings.provider_secret ?? (() => undefined),
    isLoopback(new URL(settings.base_url).hostname),
  );
  const { provider_deadline_ms: deadline_ms } = settings;
  const runner = new OperationRunner({
    store: provider_store,
    accounts: provider_accounts,
    origins,
    ...(deadline_ms !== undefined && { deadline_ms }),
    on_provider_events: () => inBackground(provider_worker.notify()),
    on_retry: (at_ms) => provider_worker.notifyAt(at_ms),
  });
  const provider_worker = new ProviderWorker({
    store: provider_store,
    accounts: provider_accounts,
    runner,
    clock,
    on_error: (error) => log(failedPoll("provider worker", clock(), error)),
  });
  const urls = { base_url, checkout_url };
  const operations = new Operations({
    store,
    changes,
    runner,
    at_once: createSandboxProvider(faults, urls),
    vault,
  });
  const request_log = new RequestLog(
    writeTo(database, storage_gb),
    (count) => log(lostEntries(clock(), count)),
    inBackground,
  );
  const known_settings = new KnownSettings();
  const sandbox: Sandbox = {
    moves: createSandboxMoves({ store, changes, urls }),
    challenges: createChallenges({ store: provider_store, origins }),
    disposable: new Sandboxes(calls),
    clock: new SandboxClock({
      calls,
      known_settings,
      sends: webhooks !== null,
      work: (longest_ms) =>
        Promise.all([provider_worker.idle(longest_ms), webhooks?.dispatcher.idle(longest_ms)]),
      ...(settings.advance_ms !== undefined && { advance_ms: settings.advance_ms }),
    }),
    changes: new SandboxChanges(
      database,
      calls,
      places,
      (error) => log(failedPoll("reads of changes", clock(), error)),
    ),
    faults,
    known_settings,
    seeded_store: new SeededStore(calls, places),
    logs_requests: settings.request_log ?? false,
  };
  return {
    store,
    webhook_store,
    provider_store,
    provider_accounts,
    provider_worker,
    bank_store,
    vault,
    operations,
    origins,
    checkout_store: new CheckoutStore(calls),
    checkout_urls: master_secret === undefined ? null : {
      master_secret,
      checkout_url,
    },
    api_keys: createApiKeys(new ApiKeyStore(calls)),
    webhooks,
    sandbox,
    relay_token: settings.relay_token ?? null,
    rate_limits: rateLimits(settings),
    storage_gb,
    places,
    large_bodies: { live: new CostlyWork(LARGE_BODIES), sandboxes: new CostlyWork(LARGE_BODIES) },
    base_url,
    checkout_url,
    docs_url,
    clock,
    random,
    allowed_origins: settings.allowed_origins ?? [],
    log,
    request_log,
    async close() {
      sandbox.changes.close();
      await Promise.all([webhooks?.close(), provider_worker.stop(), request_log.close()]);
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
