"""The agents that the tests of AutoGen's core use, by what these tests ask of them.

AutoGen has them in a package that it does not publish.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from autogen_core import (
    BaseAgent,
    Component,
    ComponentBase,
    ComponentModel,
    DefaultTopicId,
    MessageContext,
    RoutedAgent,
    default_subscription,
    message_handler,
)
from pydantic import BaseModel


@dataclass
class MessageType:
    pass


@dataclass
class ContentMessage:
    content: str


@dataclass
class CascadingMessageType:
    round: int


class NoopAgent(BaseAgent):  # type: ignore[misc]
    """Is there, and handles nothing."""

    def __init__(self) -> None:
        super().__init__("does nothing")

    async def on_message_impl(self, message: Any, ctx: MessageContext) -> Any:
        raise NotImplementedError


class LoopbackAgent(RoutedAgent):  # type: ignore[misc]
    """Answers with what it is given, and counts."""

    def __init__(self) -> None:
        super().__init__("sends back")
        self.num_calls = 0
        self.received_messages: list[Any] = []
        self.event = asyncio.Event()

    @message_handler  # type: ignore[untyped-decorator]
    async def back(
        self, message: MessageType | ContentMessage, ctx: MessageContext
    ) -> MessageType | ContentMessage:
        self.received_messages.append(message)
        self.num_calls += 1
        self.event.set()
        return message


@default_subscription
class LoopbackAgentWithDefaultSubscription(LoopbackAgent):
    """The same, for all that is published."""


@default_subscription
class CascadingAgent(RoutedAgent):  # type: ignore[misc]
    """Publishes what it hears again, for some rounds."""

    def __init__(self, max_rounds: int) -> None:
        super().__init__("publishes again")
        self.num_calls = 0
        self._last = max_rounds

    @message_handler  # type: ignore[untyped-decorator]
    async def again(self, message: CascadingMessageType, ctx: MessageContext) -> None:
        self.num_calls += 1
        if message.round < self._last:
            await self.publish_message(CascadingMessageType(message.round + 1), DefaultTopicId())


class InnerConfig(BaseModel):
    inner_message: str


class MyInnerComponent(ComponentBase[InnerConfig], Component[InnerConfig]):  # type: ignore[misc]
    component_config_schema = InnerConfig
    component_type = "custom"

    def __init__(self, inner_message: str) -> None:
        self.inner_message = inner_message

    def _to_config(self) -> InnerConfig:
        return InnerConfig(inner_message=self.inner_message)

    @classmethod
    def _from_config(cls, config: InnerConfig) -> MyInnerComponent:
        return cls(config.inner_message)


class OuterConfig(BaseModel):
    outer_message: str
    inner_class: ComponentModel


class MyOuterComponent(ComponentBase[OuterConfig], Component[OuterConfig]):  # type: ignore[misc]
    component_config_schema = OuterConfig
    component_type = "custom"

    def __init__(self, outer_message: str, inner_class: MyInnerComponent) -> None:
        self.outer_message = outer_message
        self.inner_class = inner_class

    def _to_config(self) -> OuterConfig:
        inner = self.inner_class.dump_component()
        return OuterConfig(outer_message=self.outer_message, inner_class=inner)

    @classmethod
    def _from_config(cls, config: OuterConfig) -> MyOuterComponent:
        inner = MyInnerComponent.load_component(config.inner_class)
        return cls(config.outer_message, inner)
