"""The main uses of each client library: a chat, whole and as a stream, a call, a form, a list of
models, vectors. The models are random, so that answers are told apart by their shape alone."""

import enum

import pytest

ASKED = [{"role": "user", "content": "What is the weather in Paris?"}]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Of a city.", "parameters": PARAMETERS},
}


class City(enum.Enum):
    PARIS = "Paris"
    ROME = "Rome"


def weather_model():
    from pydantic import BaseModel

    class Weather(BaseModel):
        city: City
        warm: bool

    return Weather


class TestOpenai:
    @pytest.fixture
    def client(self, chat):
        openai = pytest.importorskip("openai")
        return openai.OpenAI(base_url=f"{chat}/v1", api_key="none")

    def test_models(self, client):
        assert [model.id for model in client.models.list()] == ["small"]
        assert client.models.retrieve("small").id == "small"

    def test_chat(self, client):
        answer = client.chat.completions.create(model="small", messages=ASKED, max_tokens=8)
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage.completion_tokens == 8

    def test_stream(self, client):
        stream = client.chat.completions.create(
            model="small", messages=ASKED, max_tokens=8, stream=True,
            stream_options={"include_usage": True},
        )  # fmt: skip
        assert [piece.usage for piece in stream][-1].completion_tokens == 8

    def test_call(self, client):
        answer = client.chat.completions.create(
            model="small", messages=ASKED, tools=[TOOL], tool_choice="required"
        )
        assert answer.choices[0].message.tool_calls[0].function.name == "weather"

    def test_form(self, client):
        parsed = client.chat.completions.parse(
            model="small", messages=ASKED, response_format=weather_model()
        )
        assert isinstance(parsed.choices[0].message.parsed.warm, bool)

    def test_responses(self, client):
        assert client.responses.create(model="small", input="Hi", max_output_tokens=8).id
        stream = client.responses.create(
            model="small", input="Hi", max_output_tokens=8, stream=True
        )
        assert [event.type for event in stream][0] == "response.created"

    def test_completions(self, client):
        answer = client.completions.create(model="small", prompt="Hi", max_tokens=4, logprobs=2)
        assert len(answer.choices[0].logprobs.tokens) == 4

    def test_vectors(self, embeddings):
        openai = pytest.importorskip("openai")
        client = openai.OpenAI(base_url=f"{embeddings}/v1", api_key="none")
        answer = client.embeddings.create(model="vectors", input=["a", "b"])
        assert len(answer.data) == 2


class TestAnthropic:
    @pytest.fixture
    def client(self, chat):
        anthropic = pytest.importorskip("anthropic")
        return anthropic.Anthropic(base_url=chat, api_key="none")

    def test_message(self, client):
        answer = client.messages.create(model="small", messages=ASKED, max_tokens=8)
        assert answer.stop_reason == "max_tokens"

    def test_stream(self, client):
        with client.messages.stream(model="small", messages=ASKED, max_tokens=8) as stream:
            "".join(stream.text_stream)
            assert stream.get_final_message().usage.output_tokens == 8

    def test_call(self, client):
        tool = {"name": "weather", "input_schema": PARAMETERS}
        answer = client.messages.create(
            model="small", messages=ASKED, max_tokens=60, tools=[tool], tool_choice={"type": "any"}
        )
        assert answer.content[-1].name == "weather"

    def test_count_and_models(self, client):
        assert client.messages.count_tokens(model="small", messages=ASKED).input_tokens > 5
        assert client.models.list().data[0].id == "small"


class TestLitellm:
    @pytest.fixture
    def complete(self, chat):
        litellm = pytest.importorskip("litellm")

        def complete(**more):
            return litellm.completion(
                model="openai/small", api_base=f"{chat}/v1", api_key="none", messages=ASKED, **more
            )

        return complete

    def test_chat(self, complete):
        assert complete(max_tokens=8).usage.completion_tokens == 8

    def test_stream(self, complete):
        assert len(list(complete(max_tokens=8, stream=True))) > 2

    def test_call(self, complete):
        message = complete(tools=[TOOL], tool_choice="required").choices[0].message
        assert message.tool_calls[0].function.name == "weather"

    def test_vllms_name(self, chat):
        litellm = pytest.importorskip("litellm")
        answer = litellm.completion(
            model="hosted_vllm/small", api_base=f"{chat}/v1", messages=ASKED, max_tokens=4
        )
        assert answer.choices

    def test_vectors(self, embeddings):
        litellm = pytest.importorskip("litellm")
        answer = litellm.embedding(
            model="openai/vectors", api_base=f"{embeddings}/v1", api_key="none", input=["a"]
        )
        assert len(answer.data) == 1


class TestLangchain:
    @pytest.fixture
    def model(self, chat):
        library = pytest.importorskip("langchain_openai")
        return library.ChatOpenAI(
            model="small", base_url=f"{chat}/v1", api_key="none", max_tokens=60
        )

    def test_chat(self, model):
        assert model.invoke("Hi").usage_metadata["output_tokens"] > 0

    def test_stream(self, model):
        assert len(list(model.stream("Hi"))) > 2

    def test_call(self, model):
        answer = model.bind_tools([TOOL], tool_choice="any").invoke("Hi")
        assert answer.tool_calls[0]["name"] == "weather"

    def test_form(self, model):
        answer = model.with_structured_output(weather_model(), method="json_schema").invoke("Hi")
        assert isinstance(answer.warm, bool)

    def test_anthropic(self, chat):
        library = pytest.importorskip("langchain_anthropic")
        model = library.ChatAnthropic(model="small", base_url=chat, api_key="none", max_tokens=8)
        assert model.invoke("Hi").usage_metadata["output_tokens"] == 8


class TestLlamaIndex:
    def test_chat(self, chat):
        library = pytest.importorskip("llama_index.llms.openai_like")
        model = library.OpenAILike(
            model="small", api_base=f"{chat}/v1", api_key="none", is_chat_model=True, max_tokens=8
        )
        assert model.complete("Hi").raw
        assert len(list(model.stream_complete("Hi"))) > 1

    def test_vectors(self, embeddings):
        library = pytest.importorskip("llama_index.embeddings.openai_like")
        model = library.OpenAILikeEmbedding(
            model_name="vectors", api_base=f"{embeddings}/v1", api_key="none"
        )
        assert len(model.get_text_embedding("a")) > 1


class TestHaystack:
    def test_chat(self, chat):
        library = pytest.importorskip("haystack.components.generators.chat")
        from haystack.dataclasses import ChatMessage
        from haystack.utils import Secret

        generator = library.OpenAIChatGenerator(
            model="small", api_base_url=f"{chat}/v1", api_key=Secret.from_token("none"),
            generation_kwargs={"max_tokens": 8},
        )  # fmt: skip
        reply = generator.run([ChatMessage.from_user("Hi")])["replies"][0]
        assert reply.meta["usage"]["completion_tokens"] == 8


class TestPydanticAi:
    @pytest.fixture
    def model(self, chat):
        library = pytest.importorskip("pydantic_ai.models.openai")
        from pydantic_ai.providers.openai import OpenAIProvider

        return library.OpenAIChatModel(
            "small", provider=OpenAIProvider(base_url=f"{chat}/v1", api_key="none")
        )

    def test_chat(self, model):
        from pydantic_ai import Agent

        answer = Agent(model).run_sync("Hi", model_settings={"max_tokens": 8})
        assert answer.usage.output_tokens == 8

    def test_form(self, model):
        from pydantic_ai import Agent, NativeOutput

        answer = Agent(model, output_type=NativeOutput(weather_model())).run_sync("Hi")
        assert isinstance(answer.output.warm, bool)

    def test_call(self, model):
        from pydantic_ai import Agent

        answer = Agent(model, output_type=weather_model()).run_sync("Hi")
        assert isinstance(answer.output.warm, bool)


class TestInstructor:
    @pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
    def test_form(self, chat, mode):
        instructor = pytest.importorskip("instructor")
        import openai

        client = instructor.from_openai(
            openai.OpenAI(base_url=f"{chat}/v1", api_key="none"), mode=instructor.Mode[mode]
        )
        answer = client.chat.completions.create(
            model="small", messages=ASKED, response_model=weather_model(), max_retries=0
        )
        assert isinstance(answer.warm, bool)


class TestSmolagents:
    def test_chat(self, chat):
        library = pytest.importorskip("smolagents")
        model = library.OpenAIServerModel("small", api_base=f"{chat}/v1", api_key="none")
        answer = model([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
        assert answer.token_usage.output_tokens > 0


class TestOpenaiAgents:
    @pytest.mark.parametrize("api", ["chat", "responses"])
    def test_run(self, chat, api):
        agents = pytest.importorskip("agents")
        import openai

        agents.set_tracing_disabled(True)
        kind = {
            "chat": agents.OpenAIChatCompletionsModel,
            "responses": agents.OpenAIResponsesModel,
        }[api]
        client = openai.AsyncOpenAI(base_url=f"{chat}/v1", api_key="none")
        agent = agents.Agent(
            name="a", instructions="Answer.", output_type=weather_model(),
            model=kind(model="small", openai_client=client),
        )  # fmt: skip
        answer = agents.Runner.run_sync(agent, "Hi")
        assert isinstance(answer.final_output.warm, bool)


class TestHuggingfaceHub:
    def test_chat(self, chat):
        library = pytest.importorskip("huggingface_hub")
        client = library.InferenceClient(base_url=chat)
        answer = client.chat_completion(ASKED, max_tokens=8)
        assert answer.usage.completion_tokens == 8
        assert len(list(client.chat_completion(ASKED, max_tokens=8, stream=True))) > 2


class TestMistralai:
    @pytest.fixture
    def client(self, chat):
        pytest.importorskip("mistralai")
        try:
            from mistralai import Mistral
        except ImportError:
            from mistralai.client import Mistral
        return Mistral(api_key="none", server_url=chat)

    def test_chat(self, client):
        answer = client.chat.complete(model="small", messages=ASKED, max_tokens=8)
        assert answer.usage.completion_tokens == 8

    def test_stream(self, client):
        assert len(list(client.chat.stream(model="small", messages=ASKED, max_tokens=8))) > 2

    def test_call(self, client):
        answer = client.chat.complete(
            model="small", messages=ASKED, tools=[TOOL], tool_choice="any"
        )
        assert answer.choices[0].message.tool_calls[0].function.name == "weather"

    def test_models(self, client):
        assert client.models.list().data[0].id == "small"

    def test_vectors(self, client, embeddings):
        other = type(client)(api_key="none", server_url=embeddings)
        assert len(other.embeddings.create(model="vectors", inputs=["a", "b"]).data) == 2


class TestCohere:
    def test_rank(self, ranking):
        cohere = pytest.importorskip("cohere")
        client = cohere.ClientV2(api_key="none", base_url=ranking)
        answer = client.rerank(model="ranks", query="a", documents=["a", "b"], top_n=1)
        assert len(answer.results) == 1

    def test_vectors(self, embeddings):
        cohere = pytest.importorskip("cohere")
        client = cohere.ClientV2(api_key="none", base_url=embeddings)
        answer = client.embed(
            model="vectors", texts=["a", "b"], input_type="search_query", embedding_types=["float"]
        )
        assert len(answer.embeddings.float_) == 2


class TestWebuiapi:
    SMALL = {"prompt": "a dog face", "width": 64, "height": 64, "seed": 7}

    @pytest.fixture
    def client(self, pictures):
        webuiapi = pytest.importorskip("webuiapi")
        return webuiapi.WebUIApi(baseurl=f"{pictures}/sdapi/v1", sampler="Euler", steps=2)

    @pytest.fixture
    def picture(self, client):
        return client.txt2img(**self.SMALL).image

    def test_pictures(self, client, picture):
        assert picture.size == (64, 64)
        two = client.txt2img(**self.SMALL, batch_size=2)
        assert [image.size for image in two.images] == [(64, 64)] * 2
        assert two.info["all_seeds"] == [7, 8]

    def test_second_pass(self, client):
        answer = client.txt2img(**self.SMALL, enable_hr=True, hr_scale=2)
        assert answer.image.size == (128, 128)

    def test_from_pictures(self, client, picture):
        mask = picture.convert("L")
        for more in ({}, {"mask_image": mask, "inpainting_fill": 1}):
            answer = client.img2img(images=[picture], **self.SMALL, **more)
            assert answer.image.size == (64, 64)

    def test_enlarging(self, client, picture):
        one = client.extra_single_image(picture, upscaler_1="Lanczos", upscaling_resize=1.5)
        assert one.image.size == (96, 96)
        two = client.extra_batch_images(images=[picture, picture], upscaler_1="Nearest")
        assert [image.size for image in two.images] == [(128, 128)] * 2

    def test_settings_of_a_file(self, client, picture):
        assert "Seed: 7" in client.png_info(picture).info

    def test_what_is_not_there_is_named(self, client, picture):
        with pytest.raises(RuntimeError, match="501.*no model that describes pictures"):
            client.interrogate(picture)

    def test_lists(self, client):
        assert "Euler" in [entry["name"] for entry in client.get_samplers()]
        assert client.get_schedulers() and client.get_upscalers() and client.get_sd_models()
        assert client.util_get_current_model() == client.get_sd_models()[0]["title"]
        for ask in (
            client.get_options, client.get_cmd_flags, client.get_memory, client.get_scripts,
            client.get_embeddings, client.get_loras, client.get_sd_vae, client.get_hypernetworks,
            client.get_face_restorers, client.get_realesrgan_models, client.get_prompt_styles,
            client.get_latent_upscale_modes, client.controlnet_model_list,
        ):  # fmt: skip
            assert ask() is not None
        client.refresh_checkpoints()

    def test_progress(self, client):
        client.util_wait_for_ready(check_interval=0.1)
        assert client.get_progress()["progress"] == 0
        client.interrupt()
        client.skip()
