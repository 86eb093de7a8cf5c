/** The usage text of `deno task providers`. */

import { LIVE_CONNECTORS, methodKindsOf } from "../../shared/domain/rails.ts";

const CONNECTORS = LIVE_CONNECTORS.join(", ");
const METHODS = LIVE_CONNECTORS
  .map((name) => `${name} serves ${methodKindsOf(name).join(", ")}`).join("; ");

/** The usage text, for `--help` and after an unknown command. */
export const USAGE = `Usage: deno task providers <command>

Accounts:
  add                      Add an account at a provider. It takes the live payments
                           and transfers of its methods from now on.
    --connector NAME       ${CONNECTORS}.
    --methods KIND,...     Kinds of payment methods: ${METHODS}.
    --account NAME         Account whose live environment it serves (default: demo).
    --secret NAME          Name of the variable with the API secret. evm: the key of
                           {secret} in rpc_urls; two keys are separated by a comma.
    --notification-secret NAME
                           Name of the variable with the secret that signs
                           notifications. Give it twice during a rotation.
    --set NAME=VALUE       A setting of the connector. Repeat it for others. stripe:
                           publishable_key=pk_live_... (for cards of checkouts),
                           connected_account. evm: network,
                           chain_id, rpc_urls, xpub, contract.USDC, contract.USDT,
                           confirmations or finality=finalized, expires_after_seconds,
                           signer_url, signer_address, max_fee, max_tip. bank: iban, bic,
                           holder_name, currency, creditor_id, vop=check or opt_out,
                           prenotification_days, expires_after_days.
  list                     List all accounts.
  set pac_... --set NAME=VALUE --unset NAME --secret NAME
                           Change settings, also of a disabled account. stripe:
                           publishable_key. evm: rpc_urls,
                           confirmations, finality, expires_after_seconds, signer_url,
                           max_fee (the most that a payout may cost, in the network's coin),
                           max_tip (gwei). bank: holder_name, creditor_id, vop,
                           prenotification_days, expires_after_days.
  test pac_...             Make a harmless call and print the provider's response.
  disable pac_...          Take no new payments and transfers. Notifications, captures
                           and refunds of its payments still work.
  rotate-token pac_...     bank: give its bridge another token, and print it.

  reread pac_... --from BLOCK
                           evm: read the blocks after this one again, if the chain has
                           undone a final block. Print the booked transfers that are
                           gone.

Operations without a result:
  calls [--all]            List those that need you, oldest first: the service has given
                           up, and you decide. --all: also those that it still settles.
  retry pc_...             Sync with the provider now, and record the result that is there.
  settle pc_... --succeeded REFERENCE
                           Record the object of the provider with this id, such as pi_...
                           or re_..., as the result. It must have the amount, the currency
                           and the payment of the operation.
  settle pc_... --failed   Record that the operation did nothing. Only for state "operator".
                           Syncs with the provider first, unless you add --unsynced: you have
                           looked there, and it is too slow, or a sync would send a payout.

Provider events that need a person:
  facts                    List unmatched provider events and exceptions, each with the reason.
                           With BANK_DETAILS_KEYS also who has sent money to a bank account, or
                           got it, and the text.
  match EVENT pay_...|re_...|tr_... [--fee AMOUNT]
                           Apply a provider event to this payment, refund or transfer.
                           --fee: what the bank took inside of the amount, such as 3.50.
  match EVENT ID ID...|bf-... [--fee AMOUNT]
                           The bank has booked these orders, or the open ones of this batch
                           or file, as one entry.
  dismiss EVENT --reason TEXT
                           Keep a provider event, but count and report it no more.
  EVENT is what "facts" prints: pac_.../REFERENCE, or REFERENCE if it is unique.

  --json                   Print JSON: add, reread, calls, retry, settle, facts, match, dismiss.

Examples:
  deno task providers add --account acme --connector stripe --methods card \\
    --secret PROVIDER_STRIPE --notification-secret PROVIDER_STRIPE_NOTIFICATIONS
  deno task providers add --account acme --connector evm --methods stablecoin \\
    --secret PROVIDER_RPC --set network=base --set xpub=xpub6... \\
    --set "rpc_urls=https://one.example/{secret},https://two.example/{secret}"
  deno task providers retry pc_1m7wvb3bsdsgqhzksxxwbk1970
  deno task providers settle pc_1m7wvb3bsdsgqhzksxxwbk1970 --succeeded pi_3Qabc
  deno task providers match pi_3Qabc:succeeded pay_1m7wvb3bsdsgqhzksxxwbk1970
  deno task providers dismiss ch_3Qabc:fee --reason "fee of the old shop"

Names of variables begin with PROVIDER_. The functions read the variables; test, retry
and settle read them in their own environment. retry, settle and match read DOCS_URL
there too, for doc_url of errors that they store. match of an entry of a bank reads
BANK_DETAILS_KEYS, to keep the payer for refunds. The command uses the database of
DATABASE_URL, or else the embedded server of DATA_DIR. If that server is not running,
it runs until the command is done.

Exit codes: 0 done, 1 failed or refused, 2 invalid arguments.
`;
