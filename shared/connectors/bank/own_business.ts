/**
 * The business of a bank account that has nothing to do with this service, such as rent, wages and
 * taxes: rules of the account name it, so that nobody has to look at it. Pure.
 */

import { isValidIban, normalizeIban } from "../../core/iban.ts";
import { toSepaText } from "../../core/sepa_text.ts";
import type { BankCode, DetailRecord, Direction } from "./read_records.ts";

/** Most rules of an account, and most characters of one. Each is compared with each entry. */
const RULES_MAX = 50;
const RULE_LENGTH_MAX = 70;
/** The kinds of rules, and how each looks. */
const SHAPES: Record<OwnBusinessRule["by"], RegExp> = {
  iban: /^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$/,
  name: /[A-Z0-9]/,
  code: /^[A-Z0-9]+([-+][A-Z0-9]+)*$/,
};

/** A rule: entries of this counterparty, or with this transaction code, are business of its own. */
export interface OwnBusinessRule {
  by: "iban" | "name" | "code";
  /** In capitals. */
  value: string;
}

/** The parts of an entry that rules look at. */
interface BusinessPart {
  direction: Direction;
  bank_code: BankCode;
  detail: Pick<DetailRecord, "counterparty"> | null;
}

/**
 * Reads the rules of the setting, such as `name:City Rent GmbH; code:PMNT-ICDT-SALA`. Returns null
 * if one is wrong.
 */
export function readOwnBusiness(text: string): OwnBusinessRule[] | null {
  const rules = text.split(";").map((rule) => rule.trim()).filter((rule) => rule !== "")
    .map((rule) => {
      const [by = "", ...value] = rule.split(":");
      return { by: by.trim() as OwnBusinessRule["by"], value: value.join(":").trim() };
    })
    .map(({ by, value }) => ({
      by,
      value: by === "iban" ? normalizeIban(value) : capitals(value),
    }));
  const are_good = rules.length <= RULES_MAX &&
    rules.every(({ by, value }) =>
      Object.hasOwn(SHAPES, by) && SHAPES[by].test(value) && value.length <= RULE_LENGTH_MAX &&
      (by !== "iban" || isValidIban(value))
    );
  return are_good ? rules : null;
}

/**
 * Reports whether a rule names a part of an entry. Who sends money chooses the name, so a name only
 * counts for money that leaves.
 */
export function isOwnBusiness(part: BusinessPart, rules: readonly OwnBusinessRule[]): boolean {
  const { direction, bank_code, detail } = part;
  const { name = null, iban = null } = detail?.counterparty ?? {};
  return rules.some(({ by, value }) => {
    switch (by) {
      case "iban":
        return iban === value;
      case "name":
        return direction === "debit" && name !== null && capitals(name).startsWith(value);
      case "code":
        return hasCode(bank_code, value);
    }
  });
}

/** Compares a code of ISO 20022 or its beginning, or a code of the bank, in whole words. */
function hasCode({ domain, family, sub_family, proprietary }: BankCode, value: string): boolean {
  const standard = [domain, family, sub_family].filter((each) => each !== null).join("-");
  const own = (proprietary ?? "").toUpperCase();
  return `${standard}-`.startsWith(`${value}-`) || `+${own}+`.includes(`+${value}+`);
}

function capitals(text: string): string {
  return toSepaText(text).toUpperCase().trim();
}
