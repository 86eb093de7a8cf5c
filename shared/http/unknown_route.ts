/**
 * Responds to requests to paths that a function does not serve: 404 with the nearest served path,
 * or 405 with the methods of the path. The response does not repeat the sent path.
 */

import { ApiError } from "../core/errors.ts";

/** A served path, `/<function>/<path of the operation>`, and its method. */
interface Route {
  path: string;
  method: string;
}

export function unknownRoute(
  requested: string,
  routes: readonly Route[],
  base_url: string,
): ApiError {
  const methods = [...new Set(routesAt(requested, routes).map(({ method }) => method))].sort();
  if (methods.length > 0) {
    const allow = methods.join(", ");
    const takes = `This path takes only ${methods.join(" and ")}`;
    return new ApiError("method_not_allowed", takes, {}, { Allow: allow });
  }
  const meant = nearestRoute(requested, routes)?.replace(":id", "{id}");
  return new ApiError(
    "not_found",
    meant === undefined
      ? "Nothing is served at this path. " +
        `${base_url}/api-v1-payments/v1/openapi.json lists all paths`
      : `Nothing is served at this path: use ${base_url}${meant}`,
  );
}

function routesAt(requested: string, routes: readonly Route[]): Route[] {
  return routes.filter(({ path }) => takes(path, requested));
}

/** Reports whether the path of a route takes another path. */
export function takes(path: string, requested: string): boolean {
  const parts = path.split("/");
  // One step more than the route has decides: a path can have thousands.
  const steps = requested.split("/", parts.length + 1);
  return parts.length === steps.length &&
    parts.every((part, i) => part === steps[i] || (part.startsWith(":") && steps[i] !== ""));
}

/**
 * Finds the route that the client probably meant: without superfluous slashes, with `/v1` after the
 * name of the function, in lower case, or the first route if the path is only the function's name.
 */
function nearestRoute(requested: string, routes: readonly Route[]): string | null {
  const [name, ...rest] = requested.toLowerCase().split("/").filter((step) => step !== "");
  const resource = rest[0] === "v1" ? rest.slice(1) : rest;
  if (resource.length === 0) return routes[0]!.path;
  for (const steps of [rest, ["v1", ...resource], resource]) {
    const [route] = routesAt(["", name, ...steps].join("/"), routes);
    if (route) return route.path;
  }
  return null;
}
