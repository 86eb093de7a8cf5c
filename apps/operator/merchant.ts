/**
 * `deno task merchant` shows and sets what payers see of an account on the page of checkouts: a
 * name, a colour and a logo. All environments of the account have the same.
 */

import { Buffer } from "node:buffer";
import { MAX_KEY_NAME } from "../../shared/schema/limits.ts";
import { action, type Actions, CommandError, UsageError, type Work } from "./command_line.ts";
import { DEMO_ACCOUNT } from "./demo_account.ts";

export const USAGE = `Usage: deno task merchant <command> [--account NAME]

  show               Print what payers see of the account on the page of checkouts.
  set                Change it, for test and live alike. An empty value removes it.
    --name NAME      The merchant, in place of the name of the account.
    --color #RRGGBB  Colour of buttons, whose text is white: a contrast of at least 4.5.
    --logo FILE      A PNG, JPEG or WebP of at most 14 900 bytes.
    --account NAME   The account (default: demo).
`;

/** Least contrast of text (WCAG 2.2, 1.4.3). */
const MIN_CONTRAST = 4.5;
/** Characters of a logo as a data URL, which each page loads. */
const MAX_LOGO = 20_000;
/** The first bytes of the formats: a text could be a page with scripts, as SVG can. */
const FORMATS: readonly [type: string, pattern: RegExp][] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

/** Each member as `pay.environments.merchant` has it; null: not set. */
interface Merchant {
  name: string | null;
  color: string | null;
  logo: string | null;
}

export const ACTIONS: Actions = {
  show: action(["account"], ({ account = DEMO_ACCOUNT }) => changeMerchant(account, {})),
  set: action(["account", "name", "color", "logo"], (values) => {
    const { account = DEMO_ACCOUNT, name, color, logo } = values;
    const changed = {
      ...(name !== undefined && { name: name === "" ? null : readName(name) }),
      ...(color !== undefined && { color: color === "" ? null : readColor(color) }),
      ...(logo !== undefined && { logo: logo === "" ? null : readLogo(logo) }),
    };
    if (Object.keys(changed).length > 0) return changeMerchant(account, changed);
    throw new UsageError("set needs --name, --color or --logo");
  }),
};

/** @param changed without the members that stay */
function changeMerchant(account: string, changed: Partial<Merchant>): Work {
  return async ({ sql, print, printMessage }) => {
    const [found] = await sql<[{ merchant: Merchant | null }]>`
      select pay.change_merchant(p_account => ${account},
        p_changed => ${JSON.stringify(changed)}) as merchant`;
    const { merchant } = found;
    if (merchant === null) {
      throw new CommandError(
        `--account "${account}" has no environment: create a key for it first`,
      );
    }
    const { name, color, logo } = merchant;
    print(`name: ${name}\ncolor: ${color ?? "none"}\n`);
    print(`logo: ${logo === null ? "none" : `${logo.split(";")[0]!.slice("data:".length)}`}\n`);
    if (Object.keys(changed).length > 0) {
      printMessage(`Payers of "${account}" see this from now on`);
    }
  };
}

function readName(text: string): string {
  const name = text.trim();
  if (name !== "" && name.length <= MAX_KEY_NAME && !/\p{Cc}/u.test(name)) return name;
  throw new UsageError(`--name "${text}" must have 1 to ${MAX_KEY_NAME} printable characters`);
}

function readColor(text: string): string {
  if (!/^#[0-9a-f]{6}$/i.test(text)) {
    throw new UsageError(`--color "${text}" must be like #0a5c36`);
  }
  const contrast = contrastWithWhite(text);
  if (contrast >= MIN_CONTRAST) return text.toLowerCase();
  throw new UsageError(
    `--color "${text}" has a contrast of ${
      Math.floor(contrast * 100) / 100
    } with white, and text ` +
      `needs ${MIN_CONTRAST}: choose a darker colour`,
  );
}

/** Returns the contrast of a colour with white, from 1 to 21 (WCAG 2.2, contrast ratio). */
function contrastWithWhite(color: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 1.05 / (0.2126 * red! + 0.7152 * green! + 0.0722 * blue! + 0.05);
}

function readLogo(path: string): string {
  let bytes: Uint8Array;
  try {
    bytes = Deno.readFileSync(path);
  } catch (error) {
    throw new UsageError(`--logo "${path}" cannot be read: ${(error as Error).message}`);
  }
  const start = String.fromCharCode(...bytes.subarray(0, 12));
  const format = FORMATS.find(([, pattern]) => pattern.test(start));
  if (!format) throw new UsageError(`--logo "${path}" must be a PNG, JPEG or WebP`);
  const logo = `data:${format[0]};base64,${Buffer.from(bytes).toString("base64")}`;
  if (logo.length <= MAX_LOGO) return logo;
  throw new UsageError(
    `--logo "${path}" has ${bytes.length} bytes, which is too large: a data URL of at most ` +
      `${MAX_LOGO} characters holds 14 900`,
  );
}
