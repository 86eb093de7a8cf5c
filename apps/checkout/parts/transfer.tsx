/** The account or the address to which the payer sends money, with its QR code. */

import { useState } from "preact/hooks";
import type { NextAction } from "../../../shared/schema/payment.ts";
import { QrCode } from "../../console/parts/qr_code.tsx";
import { type Key, useWords } from "../data/words.ts";
import { inFours } from "./fields.tsx";

/** A row of the details, with the text that a button copies. */
type Row = [name: Key, shown: string, copied?: string];
type SendAction = Exclude<NextAction, { type: "authenticate" }>;

export function TransferDetails({ action, merchant }: { action: SendAction; merchant: string }) {
  const { say, money, time } = useWords();
  const is_bank = action.type === "bank_transfer";
  const currency = is_bank ? action.currency : action.asset;
  const code = is_bank ? action.epc_qr : action.uri;
  const network = is_bank ? "" : action.network[0]!.toUpperCase() + action.network.slice(1);
  const place: Row[] = is_bank
    ? [
      ["holder", action.holder_name, action.holder_name],
      ["iban", inFours(action.iban), action.iban],
      ["bic", action.bic, action.bic],
      ["reference", action.reference, action.reference],
    ]
    : [["network", network], ["address", action.address, action.address]];
  const rows: Row[] = [
    ["amount", money(action.amount_minor, currency)],
    ...place,
    ["valid_until", time(action.expires_at)],
  ];
  return (
    <>
      <p>{say(is_bank ? code === null ? "transfer_copy" : "transfer_qr" : "stablecoin_qr")}</p>
      <div class="send">
        {code !== null && <QrCode text={code} label={say(is_bank ? "qr_transfer" : "qr_wallet")} />}
        <dl>
          {rows.map(([name, shown, copied]) => (
            <div key={name}>
              <dt>{say(name)}</dt>
              <dd>
                <span>{shown}</span>
                {copied && <Copy name={say(name)} text={copied} />}
              </dd>
            </div>
          ))}
        </dl>
      </div>
      <p class="important">
        {is_bank
          ? say("transfer_reference")
          : say("stablecoin_only", { asset: action.asset, network })}
      </p>
      <p>{say(is_bank ? "transfer_when" : "stablecoin_when", { merchant })}</p>
      <p class="waiting" role="status">{say("waiting")}</p>
    </>
  );
}

function Copy({ name, text }: { name: string; text: string }) {
  const { say } = useWords();
  const [is_copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  const act = say(is_copied ? "copied" : "copy");
  return (
    <button type="button" class="plain" aria-label={`${act}: ${name}`} onClick={copy}>
      <span aria-live="polite">{act}</span>
    </button>
  );
}
