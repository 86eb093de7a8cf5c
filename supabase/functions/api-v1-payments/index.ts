// Serves the edge function api-v1-payments. Its code is in shared/.
import { openDependencies } from "../../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";

Deno.serve(createPaymentsFunction(openDependencies((name) => Deno.env.get(name))));
