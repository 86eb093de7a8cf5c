/** Limits of the wire contract, each with its source. */

/** Largest amount of one payment, refund or transfer, in minor units (contract §2). */
export const MAX_AMOUNT_MINOR = 999_999_999_999;
/** Characters of a description (contract §2). */
export const MAX_DESCRIPTION = 500;
/** Characters of a merchant's reference (contract §2). */
export const MAX_REFERENCE = 255;
/** Characters of a merchant's id of a customer (contract §2). */
export const MAX_CUSTOMER_ID = 64;
/** Fewest and most characters of a search in a list. The service chose the numbers. */
export const MIN_SEARCH = 2;
export const MAX_SEARCH = 100;
/** Other prices of a checkout. The service chose the number. */
export const MAX_OTHER_PRICES = 5;
/** Hours for which a checkout is open by default, and at most. The service chose the numbers. */
export const CHECKOUT_HOURS = 24;
export const MAX_CHECKOUT_HOURS = 30 * 24;
/** Characters of a return URL. The service chose the number. */
export const MAX_RETURN_URL = 2_048;
/** Entries of metadata (contract §2). */
export const MAX_METADATA_ENTRIES = 50;
/** Characters of a metadata key (contract §2). */
export const MAX_METADATA_KEY = 40;
/** Characters of a metadata value (contract §2). */
export const MAX_METADATA_VALUE = 500;
/** Characters of an e-mail address (RFC 5321 §4.5.3.1.3, less the angle brackets). */
export const MAX_EMAIL = 254;
/** Characters of the evidence in a dispute (Stripe's limit of `uncategorized_text`). */
export const MAX_EVIDENCE = 20_000;
/** Characters of a person's name. The service chose the number. */
export const MAX_NAME = 200;
/** Characters of an API key's name. The service chose the number. */
export const MAX_KEY_NAME = 100;
/** Fewest and most seconds of a span of totals. The service chose the numbers. */
export const MIN_TOTALS_SPAN = 60;
export const MAX_TOTALS_SPAN = 31 * 86_400;
/** Items of a list that are counted, as in `pay_internal.counted_rows`. */
export const MAX_COUNTED = 10_000;
/** Items of a page (contract §5). */
export const MAX_PAGE = 100;
/** Items of a page if a request has no `limit` (contract §5). */
export const DEFAULT_PAGE = 10;
/** Bytes of a request body (security §2, bad JSON). */
export const MAX_BODY_BYTES = 65_536;
/** Bytes of a body that are read before the database has admitted the request (contract §6). */
export const SMALL_BODY_BYTES = 4_096;
/** Characters of a URL: as many as servers should take (RFC 9110 §4.1), and the longest filters. */
export const MAX_URL = 8_192;
/** Characters of an idempotency key (contract §5). */
export const MAX_IDEMPOTENCY_KEY = 255;
/** Most days of an advance of a clock (contract §7), as in `pay_internal.longest_advance`. */
export const MAX_ADVANCE_DAYS = 400;
/** The latest time of a sandbox's clock (contract §7), as in `pay_internal.clock_ceiling`. */
export const CLOCK_CEILING_MS = Date.UTC(2200, 0, 1);
/** Longest delay of a declared fault in milliseconds. The service chose the number. */
export const MAX_FAULT_DELAY_MS = 10_000;
