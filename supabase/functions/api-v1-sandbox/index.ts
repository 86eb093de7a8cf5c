// Serves the edge function api-v1-sandbox. Its code is in shared/.
import { openDependencies } from "../../../shared/functions/dependencies.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";

Deno.serve(createSandboxFunction(openDependencies((name) => Deno.env.get(name))));
