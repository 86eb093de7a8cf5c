/**
 * Bank accounts on the wire (contract §2, §3): those of payers, and of payees with the details that
 * a bank needs to pay them out.
 */

import * as z from "zod";
import { PAYEE_CHECKS } from "../core/vocabulary.ts";
import { MAX_NAME } from "./limits.ts";
import { mustBe } from "./requirement.ts";

const Bic = mustBe(
  z.string().regex(/^[A-Za-z]{6}[A-Za-z0-9]{2}([A-Za-z0-9]{3})?$/)
    .describe("BIC of the bank, of 8 or 11 characters"),
  'a BIC of 8 or 11 characters, such as "COBADEFF"',
);
const HolderName = z.string().min(1).max(MAX_NAME).describe("Name of the account holder");

/** A postal address, as ISO 20022 takes it: structured, or two lines beside the city. */
export const AddressInput = z.object({
  line1: z.string().min(1).max(70).optional().describe("Street and number"),
  line2: z.string().min(1).max(70).optional().describe("A second line, such as a building"),
  city: z.string().min(1).max(35).describe("City"),
  postal_code: z.string().min(1).max(16).optional().describe("Postal code"),
  country: mustBe(
    z.string().regex(/^[A-Za-z]{2}$/).describe("Country code, ISO 3166-1 alpha-2"),
    'a country code of two letters, such as "GB"',
  ),
}).describe("Postal address of the account holder. Needed for an IBAN from outside the EEA");
/** The members of an address, none of which is required. */
export const PARTIAL_ADDRESS = AddressInput.partial().shape;
/** A postal address in the body of a request. */
export type AddressInput = Partial<Record<keyof typeof PARTIAL_ADDRESS, string | undefined>>;

export const IbanInput = mustBe(
  z.preprocess(
    (value) => typeof value === "string" ? { iban: value } : value,
    z.object({
      iban: mustBe(
        z.string().min(5).max(60).describe("The IBAN. Spaces and case are ignored"),
        'an IBAN as text, such as "DE89 3704 0044 0532 0130 00"',
      ),
      bic: Bic.optional(),
      holder_name: HolderName.optional(),
      address: AddressInput.optional(),
    }),
  ).describe("A bank account: an object, or the IBAN as text"),
  'an IBAN as text, or an object with "iban"',
);
export type IbanInput = z.infer<typeof IbanInput>;

export const ShownIban = z.object({
  country: z.string().describe("Country code, ISO 3166-1 alpha-2"),
  last4: z.string().describe("The last four characters of the IBAN"),
}).describe("The shown parts of a bank account");

/** The members of a payee beside the address. */
export const PAYEE = {
  iban: IbanInput.optional(),
  holder_name: HolderName.optional().describe(
    "Name of the payee, which the bank verifies. Required with a live key",
  ),
  bic: Bic.optional(),
};

export const PAYEE_WITH_ADDRESS = { ...PAYEE, address: AddressInput.optional() };

/** The account to which money is paid out. */
export interface PayeeInput {
  iban?: IbanInput | undefined;
  holder_name?: string | undefined;
  bic?: string | undefined;
  address?: AddressInput | undefined;
}

export const Speed = z.enum(["standard", "instant"]).describe(
  "`instant` asks for SEPA Instant, for EUR to an IBAN only. If the payee's bank does not take " +
    "it, the payout fails, and is not sent again as a standard one. By default `standard`",
);

export const ShownSpeed = Speed.nullable().describe("Null if no bank pays it out");

export const PayeeCheck = z.enum(PAYEE_CHECKS).describe(
  "The bank's comparison of the payee's name with the account. `unavailable`: the bank could not " +
    "compare them. `pending`: the bank has not finished. With `close_match`, `no_match` and " +
    "`unavailable` the payout stays `pending` until an operator approves it",
);
export type PayeeCheck = z.infer<typeof PayeeCheck>;

export const ShownPayeeCheck = PayeeCheck.nullable().describe("Null if the bank has told none");
