/** The query of the log of requests (contract §5). */

import * as z from "zod";
import { MAX_IDEMPOTENCY_KEY } from "./limits.ts";
import { page } from "./list.ts";
import { mustBe } from "./requirement.ts";
import { id } from "./values.ts";

export const RequestSource = z.enum(["program", "web_page"]).describe(
  "`web_page`: a browser sent the request for a page, such as the console. `program`: " +
    "anything else",
);

const METHOD_WORDS = 'an HTTP method such as "POST"';

const PATH_FORM_WORDS = 'a path that begins with the function: "/api-v1-payments/v1/payments"';

const STATUS_WORDS = 'an HTTP status from 100 to 599, a class of them such as 4xx, or "error"';

const RESOURCE_WORDS = "the id of a resource, copied from a response";

export const ListRequestsQuery = z.object({
  ...page("req_"),
  method: mustBe(
    z.string().regex(/^[A-Z]{3,7}$/).optional().describe("Only requests with this method"),
    METHOD_WORDS,
  ),
  path: mustBe(
    z.string().max(300).regex(/^\/api-v1-(?:payments|sandbox)\//).optional()
      .describe("Only requests with exactly this path, as the log shows it"),
    PATH_FORM_WORDS,
  ),
  status: mustBe(
    z.string().regex(/^(?:[1-5](?:[0-9]{2}|xx)|error)$/).optional().describe(
      "Only responses with this HTTP status or class of statuses, such as 4xx. `error`: 4xx and " +
        "5xx without 402, because a decline is a result",
    ),
    STATUS_WORDS,
  ),
  request_id: id("req_").optional().describe("Only the request with this id"),
  idempotency_key: z.string().min(1).max(MAX_IDEMPOTENCY_KEY).optional()
    .describe("Only requests with this idempotency key"),
  api_key_id: id("key_").optional().describe("Only requests of this API key"),
  resource_id: mustBe(
    z.string().regex(/^[a-z]{2,4}_[0-9a-z]{26}$/).optional()
      .describe("Only requests that have made this resource, or that name it in their path"),
    RESOURCE_WORDS,
  ),
  fault_id: id("flt_").optional().describe("Only requests that this declared fault decided"),
  source: RequestSource.optional().describe("Only requests from such a client"),
});
